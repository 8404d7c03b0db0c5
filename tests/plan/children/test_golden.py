"""Manifests against the files in ``golden/``.

A wanted change shows there as a difference to review: ``UPDATE_GOLDEN=1 pytest
tests/plan/children/test_golden.py`` writes the files anew.
"""

import os
from pathlib import Path

import pytest
import yaml

from tests.plan.children.cases import CASES, manifests
from tests.plan.children.set_cases import SET_CASES, set_manifests

RENDERED = {
    **{name: lambda case=case: manifests(case()) for name, case in CASES.items()},
    **{name: lambda case=case: set_manifests(case()) for name, case in SET_CASES.items()},
}
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", RENDERED)
def test_manifests_are_as_reviewed(name):
    rendered = yaml.safe_dump_all(RENDERED[name](), sort_keys=True, width=100)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(rendered, encoding="utf-8")
    assert rendered == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(RENDERED)
