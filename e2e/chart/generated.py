"""Every generated file of the charts, with what it has to hold."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from e2e.chart import readme, schema
from e2e.chart.values import documented
from e2e.controlplane.supervised import REPOSITORY

CHARTS = REPOSITORY / "charts"
OPERATOR, CRDS = CHARTS / "poolwise", CHARTS / "poolwise-crds"
_HEADER = "# Generated from values.yaml by `make generate`.\n"

Files = dict[Path, str]


def files() -> Files:
    """Path and contents of each."""
    wanted: Files = {OPERATOR / "files" / "defaults.yaml": defaults(OPERATOR / "values.yaml")}
    for chart in (OPERATOR, CRDS):
        wanted |= _copies(chart) | _descriptions(chart)
    return wanted


def defaults(values: Path) -> str:
    """The defaults without comments, for templates: Helm hides ``values.yaml`` from them."""
    plain = yaml.safe_load(values.read_text(encoding="utf-8"))
    return _HEADER + yaml.safe_dump(plain, sort_keys=False, width=120)


def _copies(chart: Path) -> Files:
    crds = sorted((REPOSITORY / "crds").glob("*.yaml"))
    return {chart / "files" / "crds" / crd.name: crd.read_text(encoding="utf-8") for crd in crds}


def _descriptions(chart: Path) -> Files:
    values = documented(chart / "values.yaml")
    path = chart / "values.schema.json"
    completed = schema.complete(path, values)
    text = readme.readme(chart.name, values, json.loads(completed))
    return {path: completed, chart / "README.md": text}


def stale() -> list[Path]:
    """Files that differ from what they have to be, and CRDs that should not be there."""
    wanted = files()
    differing = [path for path, text in wanted.items() if not _holds(path, text)]
    extra = [
        path
        for chart in (OPERATOR, CRDS)
        for path in (chart / "files" / "crds").iterdir()
        if path not in wanted
    ]
    return sorted(differing + extra)


def write() -> None:
    """Write all of them, and remove copies of CRDs that are gone."""
    wanted = files()
    for path in stale():
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text
