from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from e2e import progress
from e2e.errors import BuildFailed
from e2e.progress import Command, elapsed, last_lines


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (200, "3 min 20 s")]
)
def test_elapsed_time_reads_as_people_say_it(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def test_a_failure_shows_the_last_lines_of_its_output(tmp_path: Path) -> None:
    program = "import sys; print(*range(100), sep='\\n'); sys.exit('no such package')"
    command = Command("building x", [sys.executable, "-c", program], tmp_path, tmp_path / "l", {})
    with pytest.raises(BuildFailed, match="building x failed with exit status 1") as failed:
        command.run()
    assert "    99\n    no such package" in str(failed.value)
    assert "    80\n" not in str(failed.value)


def test_a_long_command_says_that_it_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PERIOD_SECONDS", 0.01)
    program = [sys.executable, "-c", "import time; time.sleep(0.2)"]
    Command("building x", program, tmp_path, tmp_path / "log", {}).run()
    assert re.search(r"^    building x: \d+ s so far$", capsys.readouterr().err, re.MULTILINE)


def test_a_missing_log_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "no log" in last_lines(tmp_path / "missing")
