"""Every shipped query gives an answer where there is something to tell, as promtool computes it.

That all names and labels exist does not make a query right: a join may still match nothing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.observability.alert_case import GROUPS
from tests.observability.queries import RULES, Shipped, of_pages, of_panels, of_variables
from tests.observability.scraped import MINUTES, operator_registry, series
from tests.observability.vocabulary import exported

QUERIES = [*of_panels(), *of_variables(), *of_pages()]
SERVICE = 'namespace="chat", name="assistant"'
JOB = 'namespace="train", name="runs"'
OF_JOBS = {"workload/Predicted step/A", "workload/Cost so far/B"}
"""What a service does not have."""


def _test(shipped: Shipped) -> dict[str, object]:
    of_job = shipped.where in OF_JOBS
    query = shipped.query.replace(SERVICE, JOB) if of_job else shipped.query
    assert not of_job or JOB in query
    return {
        "expr": f"count({query}) > bool 0",
        "eval_time": f"{MINUTES}m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }


@pytest.mark.tools("promtool")
def test_every_query_has_an_answer(promtool: Path, tmp_path: Path):
    given = [{"series": name, "values": values} for name, values in series().items()]
    tests = [_test(shipped) for shipped in QUERIES]
    document = {
        "rule_files": [str(RULES)],
        "group_eval_order": GROUPS,
        "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": tests}],
    }
    path = tmp_path / "answers.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    command = [str(promtool), "test", "rules", str(path)]
    answered = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answered.returncode == 0, answered.stdout + answered.stderr


def test_what_is_scraped_is_all_that_is_exported():
    """Else a query of a metric that no sample stands for would have no answer to give."""
    told = {sample.name for each in operator_registry().collect() for sample in each.samples}
    assert told == set(exported())
