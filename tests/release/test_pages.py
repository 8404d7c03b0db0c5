"""The pages on security name files, tests and commands that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ("docs/threat-model.md", "docs/release.md", "SECURITY.md", "CONTRIBUTING.md")
FOLDERS = "operator|charts|tests|e2e|docs|requirements|bench|crds|examples|observability|\\.github"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*[\w])(?:::(\w+))?`")


def named(page: str) -> set[tuple[str, str]]:
    return set(NAMED.findall((ROOT / page).read_text("utf-8")))


def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    files = {path for path, _ in named(page)}
    assert files
    assert sorted(path for path in files if not (ROOT / path).exists()) == []


def test_every_control_is_shown_by_a_test_that_exists() -> None:
    shown = {(path, test) for path, test in named("docs/threat-model.md") if test}
    assert len(shown) > 20
    gone = [f"{path}::{test}" for path, test in shown if test not in functions(ROOT / path)]
    assert sorted(gone) == []


def test_every_control_says_where_it_is_and_what_shows_it() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    table = page.partition("## Controls")[2].partition("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 15
    for threat, control, where, shown in rows[1:]:
        assert control and "`" in where and "`tests" in shown, threat


@pytest.mark.parametrize("page", PAGES)
def test_named_make_targets_exist(page: str) -> None:
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    told = re.findall(
        r"\$ make ((?:[a-z0-9-]+ ?)+)|`make ([a-z0-9-]+)", (ROOT / page).read_text("utf-8")
    )
    called = {target for each in told for target in " ".join(each).split()}
    assert called <= targets


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", (ROOT / page).read_text("utf-8"))
    assert sorted(each for each in links if not ((ROOT / page).parent / each).exists()) == []
