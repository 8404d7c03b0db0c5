"""What the pages point at exists: links, headings, files, modules, targets."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/**/*.md")],
)
FOLDERS = "bench|charts|crds|docs|e2e|examples|observability|operator|requirements|tests"
SOURCES = ("bench", "e2e", "observability", "operator", "tests")
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of each link into the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


@by_page
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@by_page
def test_files_that_are_named_exist(page: Path) -> None:
    """A name with a placeholder or a wildcard is none."""
    named = re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./*-]*", text_of(page))
    paths = [each.rstrip(".") for each in named if "*" not in each]
    assert [each for each in paths if not (ROOT / each).exists()] == []


@by_page
def test_modules_that_are_named_exist(page: Path) -> None:
    """``step.py`` alone stands for any file of that name."""
    named = set(re.findall(r"`(\w+\.py)`", text_of(page)))
    assert named <= {path.name for top in SOURCES for path in (ROOT / top).rglob("*.py")}


@by_page
def test_modules_that_are_run_exist(page: Path) -> None:
    for module in re.findall(r"python3? -m ((?:poolwise|bench|e2e)[\w.]*)", text_of(page)):
        assert importlib.util.find_spec(module.rstrip(".")) is not None, module


@by_page
def test_targets_that_are_named_exist(page: Path) -> None:
    targets = re.findall(r"^([a-z0-9-]+):", text_of(ROOT / "Makefile"), re.MULTILINE)
    named = re.findall(r"(?:\$ |`|\"\$\()(?:[A-Z]+=\S+ )*make (?:-s )?([a-z0-9-]+)", text_of(page))
    assert set(named) <= set(targets)


def test_every_page_of_docs_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            found = [(page.parent / path).resolve() for path, _ in links(page) if path]
            waiting += [each for each in found if each.suffix == ".md" and each.exists()]
    assert {page for page in PAGES if (ROOT / "docs") in page.parents} <= reached
