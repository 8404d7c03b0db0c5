"""The threat model names, for every control, where it is and a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "threat-model.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def controls() -> list[list[str]]:
    """The rows of the table, without its heading."""
    table = PAGE.read_text("utf-8").partition("## Controls")[2].partition("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


def test_every_control_is_shown_by_a_test_that_exists() -> None:
    assert len(controls()) > 15
    for threat, *_, shown in controls():
        tests = TEST.findall(shown)
        assert tests, threat
        assert [test for path, test in tests if test not in functions(ROOT / path)] == [], threat


def test_every_control_says_where_it_is() -> None:
    for threat, _, where, _ in controls():
        paths = re.findall(r"`([^`]+)`", where)
        assert paths, threat
        assert [path for path in paths if not (ROOT / path).exists()] == [], threat
