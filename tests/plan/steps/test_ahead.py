"""A run that was stopped waits with what its last checkpoint lacks, and the money that is left."""

from datetime import timedelta

import pytest

from poolwise.plan.cluster import decide
from poolwise.plan.conditions import timestamp
from poolwise.plan.decision import Plan
from poolwise.plan.status.story import story
from poolwise.plan.steps.remaining import remaining_seconds
from poolwise.plan.wording import money
from tests.plan.cluster_given import (
    NOW,
    changed,
    h100,
    job,
    key,
    l40s,
    observed,
    outcomes,
    plan_of,
    running,
)
from tests.plan.machines import CALIBRATION, TABLES
from tests.plan.test_cluster_moves import KEEPS, MAY, slow_run

STEPS = 1000
LENGTH = {"globalBatchSize": 256, "sequenceLength": 4096, "steps": STEPS}


def stopped(kept=750, name="job", count=8, spent=None, told=None, **spec):
    """A run of a thousand steps that told this of itself before it was stopped."""
    document = job(name, count, **{"training": LENGTH, **KEEPS, **spec})
    saved = {"lastCheckpointTime": timestamp(NOW), "lastCheckpointSteps": kept} if kept else {}
    training = {
        "model": "Llama-3.1-8B",
        "pool": "h100",
        "time": timestamp(NOW),
        "steps": 800,
        "ofSteps": STEPS,
        **saved,
        **(told or {}),
    }
    used = {"accrued": {"until": timestamp(NOW), "currency": "USD", **spent}} if spent else {}
    return {**document, "status": {"observed": {"training": training, **used}}}


def fresh(**spec):
    return job(**{"training": LENGTH, **KEEPS, **spec})


def test_what_is_ahead_is_what_the_last_checkpoint_lacks():
    whole, left = (plan_of(h100(1), each) for each in (fresh(), stopped(750)))
    assert left.steps_ahead == 250
    for figure in ("total_seconds", "total_cost", "energy_joules"):
        assert getattr(left.chosen, figure) == pytest.approx(getattr(whole.chosen, figure) / 4)
    assert left.chosen.prediction == whole.chosen.prediction, "a step takes as long as before"
    assert left.reason.endswith("; goes on from its last checkpoint, at step 750 of 1,000")
    assert story(left, None)["stepsAhead"] == 250
    assert "stepsAhead" not in story(whole, None)
    assert "checkpoint" not in whole.reason


@pytest.mark.parametrize(
    ("document", "because"),
    [
        (stopped(0), "no checkpoint of it was seen"),
        (stopped(told={"lastCheckpointSteps": None}), "nobody knows how many steps"),
        (stopped(told={"model": "Llama-3.1-70B"}), "its checkpoint is of Llama-3.1-70B"),
        (stopped(checkpoint=None), "spec.checkpoint is not set"),
    ],
)
def test_without_a_checkpoint_the_whole_length_is_ahead_and_it_says_so(document, because):
    document["spec"] = {name: each for name, each in document["spec"].items() if each is not None}
    plan, whole = plan_of(h100(1), document), plan_of(h100(1), fresh())
    assert plan.steps_ahead == STEPS
    if "checkpoint" in document["spec"]:
        assert plan.chosen.total_seconds == pytest.approx(whole.chosen.total_seconds)
    assert f"; its whole length is ahead, since {because}" in plan.reason


def test_a_run_that_told_nothing_is_known_to_have_run_by_what_it_cost():
    silent = fresh()
    accrued = {"until": timestamp(NOW), "cost": 3.0, "currency": "USD"}
    silent["status"] = {"observed": {"accrued": accrued}}
    assert "whole length is ahead" in plan_of(h100(1), silent).reason


@pytest.mark.parametrize(
    ("training", "ahead"),
    [
        ({"steps": 2000}, 1250),  # longer: as many steps are kept
        ({"steps": 800}, 200),  # shorter: of as large a part of it at most
        ({"steps": 500, "globalBatchSize": 512}, 125),  # the same in larger steps
    ],
)
def test_steps_count_as_the_spec_has_them_now(training, ahead):
    document = changed(stopped(750), training={**LENGTH, **training})
    assert plan_of(h100(1), document).steps_ahead == ahead


def test_a_run_that_was_done_but_for_its_end_still_has_some_steps_ahead():
    assert plan_of(h100(1), stopped(STEPS)).steps_ahead == 10


def test_what_was_spent_counts_against_the_limit():
    whole = plan_of(h100(1), fresh()).chosen.total_cost
    limit = {"objective": {"maxCost": f"{whole:.2f}"}}
    assert plan_of(h100(1), stopped(750, spent={"cost": 0.7 * whole}, **limit)).placed
    refused = plan_of(h100(1), stopped(750, spent={"cost": 0.8 * whole}, **limit))
    assert refused.reason_code == "NoFeasiblePool"
    assert f"after the {money(0.8 * whole, 'USD')} already spent" in refused.reason
    francs = {"cost": 0.8 * whole, "currency": "CHF"}
    assert plan_of(h100(1), stopped(750, spent=francs, **limit)).placed


def test_who_has_spent_more_than_the_limit_has_nothing_left():
    whole = plan_of(h100(1), fresh()).chosen.total_cost
    limit = {"objective": {"maxCost": f"{whole:.2f}"}}
    refused = plan_of(h100(1), stopped(750, spent={"cost": 2 * whole}, **limit))
    assert refused.reason_code == "NoFeasiblePool"
    assert f"maxCost is {money(0.0, 'USD')} after the" in refused.reason


def test_a_deadline_is_held_against_what_is_ahead():
    seconds = plan_of(h100(1), fresh()).chosen.total_seconds
    deadline = {"objective": {"deadline": (NOW + timedelta(seconds=seconds / 2)).isoformat()}}
    assert not plan_of(h100(1), fresh(**deadline)).placed
    assert plan_of(h100(1), stopped(750, **deadline)).placed
    assert not plan_of(h100(1), stopped(0, **deadline)).placed


def test_a_short_rest_starts_while_a_gang_waits_for_the_room():
    """One of two nodes is taken for an hour, and the gang that is first in line needs both."""
    long = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "100G"}
    first = job("first", age_seconds=9000, training=long)
    children = running(h100(1), first)
    total = plan_of(h100(1), fresh()).chosen.total_seconds
    first["status"] = {
        "plan": {"totalSeconds": total / 2, "predicted": {}},
        "observed": {"startTime": timestamp(NOW)},
    }
    gang = job("gang", 16, age_seconds=10 * 86_400, training=LENGTH)
    for kept, starts in ((900, True), (0, False)):
        found = outcomes(h100(2), first, gang, stopped(kept), children=children)
        assert not found["gang"].placed
        assert found["job"].placed is starts, found["job"].reason


def test_what_is_done_counts_when_a_run_that_has_a_deadline_moves():
    """Its whole length would miss the deadline, what is left does not."""
    run, children = slow_run()
    here = plan_of(l40s(1), run).chosen
    deadline = {"deadline": (NOW + timedelta(seconds=0.6 * here.total_seconds)).isoformat()}
    run["spec"]["objective"] = deadline
    run["status"]["plan"]["pool"] = here.pool
    steps = {"ofSteps": 19_073, "steps": 12_000, "paceSeconds": 15.0, "pool": here.pool}
    told = stopped(12_000, told=steps)["status"]["observed"]["training"]
    for training, reason in ((told, "gains"), (None, "would miss its deadline")):
        seen = dict(run["status"]["observed"])
        seen |= {"training": training} if training else {}
        document = {**run, "status": {**run["status"], "observed": seen}}
        cluster = observed([*l40s(1), *h100(1)], document, children=children)
        plan = decide(cluster, TABLES, MAY, CALIBRATION, NOW).outcomes[key("slow")]
        assert isinstance(plan, Plan) and plan.vacates and reason in plan.reason


def test_a_plan_of_what_was_ahead_is_not_shortened_twice():
    """Placed again with a quarter ahead; stopped and started by Kueue once more, with less."""
    document = stopped(750)
    document["status"]["plan"] = {"totalSeconds": 1000.0, "stepsAhead": 250}
    placed = remaining_seconds(document, NOW)
    assert placed is not None and placed.mid == pytest.approx(1000.0)
    document["status"]["observed"]["training"]["lastCheckpointSteps"] = 875
    again = remaining_seconds(document, NOW)
    assert again is not None and again.mid == pytest.approx(500.0)


def test_what_was_ahead_at_its_start_is_never_more_than_was_planned():
    """Its checkpoint lacks 900 steps, though the plan was made for 250."""
    document = stopped(100)
    document["status"]["plan"] = {"totalSeconds": 1000.0, "stepsAhead": 250}
    left = remaining_seconds(document, NOW)
    assert left is not None
    assert left.mid == pytest.approx(1000.0)
