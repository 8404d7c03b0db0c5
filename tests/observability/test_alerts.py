"""The alerts, run by promtool as Prometheus runs them: each one fires, and not in a near miss."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.observability.alert_case import GROUPS
from tests.observability.operator_alerts import OPERATOR_CASES
from tests.observability.queries import DASHBOARDS, ROOT, RULES, alerts
from tests.observability.workload_alerts import WORKLOAD_CASES

CASES = (*OPERATOR_CASES, *WORKLOAD_CASES)
TESTS = [
    pytest.param(document, id=f"{case.alert}-{name}")
    for case in CASES
    for name, document in case.documents().items()
]
RUNBOOKS = "https://poolwise.dev/docs/alerts"
"""The chart replaces it."""
every_alert = pytest.mark.parametrize("name", alerts())


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(each) for each in command], capture_output=True, text=True)


@pytest.mark.tools("promtool")
def test_prometheus_takes_the_file(promtool: Path):
    checked = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.tools("promtool")
@pytest.mark.parametrize("document", TESTS)
def test_alerts(document: dict[str, Any], promtool: Path, tmp_path: Path):
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    tested = run(promtool, "test", "rules", path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_its_cases():
    assert [case.alert for case in CASES] == list(alerts())
    assert all(case.near for case in CASES)


def test_groups_are_evaluated_in_their_order():
    document = yaml.safe_load(RULES.read_text())
    assert [group["name"] for group in document["groups"]] == GROUPS


@every_alert
def test_an_alert_is_complete(name):
    rule = alerts()[name]
    assert re.fullmatch(r"Poolwise[A-Za-z]+", name)
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert "{{" not in rule["annotations"]["summary"]
    assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{name.lower()}"


CONDITIONS = (ROOT / "docs/conditions.md").read_text()
WORDS = frozenset(re.findall(r"^\| `(\w+)` \|", CONDITIONS, re.MULTILINE))
"""Types and reasons of conditions; a test of that page keeps it complete."""
_WORD_VALUES = re.compile(r'\b(?:reason|condition)[=!]=?~?\\?"([^"\\]+)\\?"')


@pytest.mark.parametrize("path", [RULES, *DASHBOARDS], ids=lambda path: path.name)
def test_reasons_and_conditions_are_words_of_the_operator(path):
    """A misspelt value never matches, which no query language tells."""
    used = {word for values in _WORD_VALUES.findall(path.read_text()) for word in values.split("|")}
    assert used - {"%q"} <= WORDS
    assert used or path.stem == "operator"
