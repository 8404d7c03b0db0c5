"""Commands of the kind suite, and the command line itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from e2e.errors import HarnessError, ProcessFailed
from e2e.kind.__main__ import arguments
from e2e.kind.cluster import GivenCluster
from e2e.kind.command import attempt, run
from e2e.kind.engine import Engine, NoEngine
from e2e.kind.figures import Figures


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_command_gives_what_it_printed() -> None:
    assert run(python("print(input())"), stdin="hello\n") == "hello\n"


def test_a_command_that_fails_is_quoted() -> None:
    with pytest.raises(ProcessFailed, match=r"exit status 3 of .*\n    no data"):
        run(python("import sys; print('no data', file=sys.stderr); sys.exit(3)"))


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(ProcessFailed, match="no-such-program is not installed"):
        attempt(["no-such-program"])


def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(ProcessFailed, match=r"no end after 0\.1 s"):
        attempt(python("import time; time.sleep(60)"), timeout_seconds=0.1)


def test_without_an_engine_it_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoEngine, match=r"nothing here can start .*: docker is not installed"):
        Engine(tmp_path).start()


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no kubeconfig at"):
        GivenCluster({}, tmp_path / "nowhere")


def test_what_is_not_ours_is_pytests() -> None:
    chosen, others = arguments(["--core", "-k", "training", "-x"])
    assert chosen.core
    assert others == ["-k", "training", "-x"]


def test_a_figure_over_its_bar_stands_out() -> None:
    figures = Figures()
    figures.note("install", 61.25, "s", 60)
    figures.note("memory", 82, "MiB", 150)
    over, under = map(str, figures.measured)
    assert over.endswith("(bar 60)  OVER THE BAR")
    assert under.endswith("82.0 MiB  (bar 150)")
