"""docs/api.md names every field that a status is given, of the schema or beyond it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolwise.plan.records import shape

ROOT = Path(__file__).resolve().parents[3]
PLAN = ROOT / "operator" / "poolwise" / "plan"
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
WRITERS = (
    "status/predicted.py",
    "status/story.py",
    "status/workload.py",
    "live/telling.py",
    "records/meter.py",
    "steps/told.py",
)
"""Modules whose dictionaries become parts of a status."""
INSIDE = {
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "workload",
    "precision",
    "samples",
    "elsewhere",
    "ratio",
    "low",
    "mid",
}
"""Keys of words, and of what ``rated``, ``correctedFrom`` and ``forecast`` hold."""


def keys(path: Path) -> Iterator[str]:
    """Of all dictionaries that are spelled out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for each in node.keys if isinstance(node, ast.Dict) else ():
            key = each.value if isinstance(each, ast.Constant) else None
            if isinstance(key, str) and re.fullmatch(r"[a-z][A-Za-z]*", key):
                yield key


@pytest.mark.parametrize("name", WRITERS)
def test_every_field_is_named(name: str) -> None:
    given = {re.sub("(Low|High)$", "", each) for each in keys(PLAN / name)} - INSIDE
    assert given
    told = [each for each in given if f"`{each}`" in PAGE or f"`{each}Low`" in PAGE]
    assert sorted(given - set(told)) == []


def test_every_part_of_a_shape_is_named() -> None:
    given = {*shape._TRAINING, *shape._SERVING}
    assert sorted(each for each in given if f"`{each}`" not in PAGE) == []
