"""What runs and lost its story is told anew, and goes on where it is."""

from __future__ import annotations

import pytest

from tests.plan.cluster_given import h100, job, l40s, plan_of, running, service


@pytest.mark.parametrize("workload", [job(count=8), service()], ids=["run", "service"])
def test_a_status_that_was_lost_is_worked_out_again_for_what_runs(workload):
    nodes = [*h100(2), *l40s(2)]
    placed, (child,) = plan_of(nodes, workload), running(nodes, workload)
    live = {**child, "metadata": {**child["metadata"], "uid": "of-the-child"}}
    again = plan_of(nodes, workload, children=[live])
    assert again.kept
    assert again.claim == placed.claim
    assert again.chosen.prediction == placed.chosen.prediction
    assert {each.pool for each in again.candidates} == {each.pool for each in placed.candidates}
    told = {**workload, "status": {"plan": {"predicted": {"stepSeconds": "1"}}}}
    assert plan_of(nodes, told, children=[live]).chosen.prediction is None
