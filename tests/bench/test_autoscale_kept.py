from __future__ import annotations

from pathlib import Path

import pytest

from bench.autoscale import kept
from bench.files import BadInput


def test_what_was_replayed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "build" / "replays.jsonl"
    assert kept.read(path) == []
    kept.write(path, [{"name": "kpa"}, {"name": "apa"}])
    kept.append(path, {"name": "ours"})
    assert [each["name"] for each in kept.read(path)] == ["kpa", "apa", "ours"]


def test_a_replay_that_was_ended_while_it_was_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "replays.jsonl"
    kept.write(path, [{"name": "kpa"}])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"name": "ou')
    with pytest.raises(BadInput, match="line 2: is no JSON"):
        kept.read(path)
