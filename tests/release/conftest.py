"""A copy of the files that a release reads, to be changed by a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from e2e.release.versions import ROOT, SOURCE

READ = (
    str(SOURCE),
    "pyproject.toml",
    "charts/poolwise/Chart.yaml",
    "charts/poolwise/values.yaml",
    "charts/poolwise-crds/Chart.yaml",
    "SECURITY-INSIGHTS.yml",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The project, as far as the version and the home of the project are stated in it."""
    for name in READ:
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    return tmp_path
