"""Manifests against the files in ``golden/``.

A wanted change shows there as a difference to review: ``UPDATE_GOLDEN=1 pytest
tests/chart/test_golden.py`` writes the files anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.chart.cases import CASES
from tests.chart.rendering import Object, documents

pytestmark = pytest.mark.tools("helm")

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_as_reviewed(name: str) -> None:
    reviewed = [each for each in documents(CASES[name]) if not is_copied(each)]
    rendered = yaml.safe_dump_all(reviewed, sort_keys=True, width=100)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(rendered, encoding="utf-8")
    assert rendered == path.read_text(encoding="utf-8")


def is_copied(document: Object) -> bool:
    """Dashboards and alerts lie in the repository as they are: see ``test_monitoring.py``."""
    is_dashboard = "-dashboard-" in document["metadata"]["name"]
    return document["kind"] == "PrometheusRule" or is_dashboard


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)
