"""The version of a release: stated by the package, and repeated by what is published with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from e2e.release.errors import NotReleasable

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path("operator/poolwise/__init__.py")
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-rc\.[1-9]\d*)?")
"""What a version may be: Helm takes only SemVer, and Python reads this much of it as its own."""


def charts(root: Path = ROOT) -> list[Path]:
    """The folders of the charts."""
    return sorted(path.parent for path in root.glob("charts/*/Chart.yaml"))


def source_version(root: Path = ROOT) -> str:
    """The version that all others have to be."""
    found = re.search(
        r'^__version__ = "([^"]*)"$', (root / SOURCE).read_text("utf-8"), re.MULTILINE
    )
    if found is None:
        raise NotReleasable(f'{SOURCE}: has no line __version__ = "..."')
    return found[1]


def stated(root: Path = ROOT) -> dict[str, str]:
    """Each place that states the version, with what it states."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    places = {str(SOURCE): source_version(root), "pyproject.toml": project["version"]}
    for chart in charts(root):
        told = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))
        where = f"{chart.relative_to(root)}/Chart.yaml"
        places |= {f"{where} {key}": str(told.get(key)) for key in ("version", "appVersion")}
    return places


def version_of(tag: str) -> str:
    """``v1.2.3`` as ``1.2.3``."""
    version = tag.removeprefix("v")
    if tag == version or not SEMVER.fullmatch(version):
        raise NotReleasable(f"tag {tag}: is not a version such as v1.2.3 or v1.2.3-rc.1")
    return version


def check(tag: str, root: Path = ROOT) -> str:
    """The version of that tag, once every place states it.

    Raises :class:`NotReleasable` with a line for each place that does not.
    """
    version = version_of(tag)
    others = {where: told for where, told in stated(root).items() if told != version}
    if others:
        lines = (
            f"{where}: is {told}, the tag {tag} says {version}" for where, told in others.items()
        )
        raise NotReleasable("\n".join(lines))
    return version
