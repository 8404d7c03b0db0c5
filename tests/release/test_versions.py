"""One version everywhere, and a release only from the project's home."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.version import Version

from e2e.release import home, notes, versions
from e2e.release.errors import NotReleasable
from poolwise import __version__


def test_this_tree_states_one_version_everywhere() -> None:
    assert set(versions.stated().values()) == {__version__}
    assert versions.check(f"v{__version__}") == __version__
    assert str(Version(__version__.replace("-", ""))) == __version__.replace("-", "")


def test_every_chart_is_asked() -> None:
    asked = versions.stated()
    for chart in ("poolwise", "poolwise-crds"):
        for key in ("version", "appVersion"):
            assert f"charts/{chart}/Chart.yaml {key}" in asked


@pytest.mark.parametrize(
    "tag", ["0.1.0", "v1", "v1.2", "v01.2.3", "v1.2.3rc1", "v1.2.3-rc.0", "vx"]
)
def test_a_tag_that_is_no_version_is_refused(tag: str) -> None:
    with pytest.raises(NotReleasable, match=rf"^tag {re.escape(tag)}: is not a version"):
        versions.check(tag)


@pytest.mark.parametrize("tag", ["v1.2.3", "v1.2.3-rc.1", "v0.10.0"])
def test_a_tag_is_a_version_to_helm_and_to_python(tag: str) -> None:
    assert not Version(versions.version_of(tag)).is_devrelease


def test_another_tag_is_told_from_every_place() -> None:
    with pytest.raises(NotReleasable) as told:
        versions.check("v9.9.9")
    lines = str(told.value).splitlines()
    assert len(lines) == len(versions.stated())
    assert f"pyproject.toml: is {__version__}, the tag v9.9.9 says 9.9.9" in lines


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("operator/poolwise/__init__.py", '__version__ = "', '__version__ = "1'),
        ("pyproject.toml", '\nversion = "', '\nversion = "1'),
        ("charts/poolwise/Chart.yaml", "\nversion: ", "\nversion: 1"),
        ("charts/poolwise/Chart.yaml", "\nappVersion: ", "\nappVersion: 1"),
        ("charts/poolwise-crds/Chart.yaml", "\nversion: ", "\nversion: 1"),
    ],
)
def test_one_place_that_differs_is_named(tree: Path, path: str, old: str, new: str) -> None:
    changed = tree / path
    text = changed.read_text("utf-8")
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(NotReleasable, match=rf"^{re.escape(path)}\b.*: is 1{__version__}") as told:
        versions.check(f"v{__version__}", tree)
    assert len(str(told.value).splitlines()) == 1


def test_no_release_from_elsewhere(tree: Path) -> None:
    """A copy of the project must not publish what points to the image and page of another."""
    with pytest.raises(NotReleasable) as told:
        home.check("someone/else", tree)
    assert [line.partition(":")[0] for line in str(told.value).splitlines()] == [
        "charts/poolwise/values.yaml image.repository",
        "SECURITY-INSIGHTS.yml repository.url",
    ]


def test_a_release_from_home(tree: Path) -> None:
    values, insights = tree / home.VALUES, tree / home.INSIGHTS
    values.write_text("image: {repository: ghcr.io/you/poolwise}", "utf-8")
    insights.write_text("repository: {url: 'https://github.com/You/Poolwise'}", "utf-8")
    home.check("You/Poolwise", tree)


CHANGELOG = """# Changelog

## Unreleased

### Added
- Later.

## 1.2.0 - 2026-11-21

### Fixed
- This.

## [1.1.0]

## 1.0.0
- First.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes.section(CHANGELOG, "1.2.0") == "### Fixed\n- This.\n"
    assert notes.section(CHANGELOG, "1.0.0") == "- First.\n"


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("1.1.0", "says nothing under ## 1.1.0"),
        ("1.2", "no heading ## 1.2;"),
        ("2.0.0", "no heading"),
    ],
)
def test_a_version_without_notes_is_refused(version: str, told: str) -> None:
    with pytest.raises(NotReleasable, match=rf"^CHANGELOG.md: .*{re.escape(told)}"):
        notes.section(CHANGELOG, version)
