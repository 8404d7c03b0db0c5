"""Runs that stop: to run elsewhere, or for others; never without leave, and never in a storm."""

from dataclasses import replace
from datetime import timedelta

from poolwise.plan.cluster import decide
from poolwise.plan.decision import Plan
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, h100, job, key, l40s, observed, plan_of, running
from tests.plan.machines import CALIBRATION, TABLES

MAY = Settings(may_move=True, may_preempt=True)
KEEPS = {"checkpoint": {"claimName": "ckpt", "path": "/checkpoints", "interval": "30m"}}
HIGH = [{"metadata": {"name": "high"}, "value": 1000}]


def started(document, nodes, hours_ago):
    """The job with what its status tells once it has run for so long on these nodes."""
    total_seconds = plan_of(nodes, document).chosen.total_seconds
    at = NOW - timedelta(hours=hours_ago)
    status = {
        "plan": {"totalSeconds": total_seconds},
        "observed": {"startTime": at.isoformat()},
    }
    return {**document, "status": status}


def decided(seen, now=NOW, settings=MAY):
    return decide(seen, TABLES, settings, CALIBRATION, now)


def slow_run(tokens="20G", hours_ago=2.0):
    """A run of several days on L40S that keeps checkpoints, and the nodes it started on."""
    training = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": tokens}
    run = job("slow", 8, age_seconds=7200, training=training, **KEEPS)
    return started(run, l40s(1), hours_ago), running(l40s(1), run)


def test_a_run_moves_to_a_faster_pool_that_came_free():
    run, children = slow_run()
    seen = observed([*l40s(1), *h100(1)], run, children=children)
    leaves = decided(seen).outcomes[key("slow")]
    assert (leaves.placed, leaves.vacates, leaves.reason_code) == (False, True, "Moves")
    assert leaves.chosen.accelerator == "H100-SXM5-80GB"
    assert "gains" in leaves.reason and "the restart loses" in leaves.reason


def test_a_run_moves_to_where_it_meets_its_deadline():
    """The cheapest pool is kept to, until it would be late there."""
    run, children = slow_run()
    whole = plan_of(l40s(1), run).chosen.total_seconds
    for share, moves in ((2.0, False), (0.7, True), (0.001, False)):
        deadline = (NOW + timedelta(seconds=share * whole)).isoformat()
        goal = {"goal": "Cost", "deadline": deadline}
        document = {**run, "spec": {**run["spec"], "objective": goal}}
        seen = observed([*l40s(1), *h100(1)], document, children=children)
        plan = decided(seen).outcomes[key("slow")]
        assert plan.vacates is moves, plan.reason
        assert ("would miss its deadline by" in plan.reason) is moves


def test_nothing_moves_by_default():
    run, children = slow_run()
    seen = observed([*l40s(1), *h100(1)], run, children=children)
    assert decided(seen, settings=Settings()).outcomes[key("slow")].kept


def test_a_run_that_keeps_no_checkpoints_stays():
    run, children = slow_run()
    del run["spec"]["checkpoint"]
    seen = observed([*l40s(1), *h100(1)], run, children=children)
    assert decided(seen).outcomes[key("slow")].kept


def test_a_run_that_started_lately_or_is_nearly_done_stays():
    for tokens, hours_ago in [("20G", 0.5), ("160M", 2.0)]:
        run, children = slow_run(tokens, hours_ago)
        seen = observed([*l40s(1), *h100(1)], run, children=children)
        assert decided(seen).outcomes[key("slow")].kept


def test_a_run_whose_time_is_up_is_left_to_its_end():
    """It may take its pods a while to go; meanwhile others are placed as ever."""
    run, children = slow_run()
    late = {**run, "spec": {**run["spec"], "activeDeadlineSeconds": 7200}}
    seen = observed([*l40s(1), *h100(1)], late, job("other", 4), children=children)
    found = decided(seen).outcomes
    assert found[key("slow")].kept
    assert found[key("other")].placed


def test_what_left_to_move_gets_its_place_before_equals():
    """By itself the shorter one would go first."""
    run, children = slow_run()
    left = decided(observed([*l40s(1), *h100(1)], run, children=children)).standing
    short = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "1G"}
    rival = job("rival", 8, age_seconds=9000, training=short)
    for standing, first in [(Standing(), "rival"), (left, "slow")]:
        found = decided(observed(h100(1), run, rival, standing=standing)).outcomes
        assert [at.name for at, plan in found.items() if plan.placed] == [first]


def test_prices_and_labels_that_flap_cause_no_storm_of_moves():
    """Twelve hours in which the fast pool comes and goes every ten minutes: a run that moved
    starts anew, and stays for an hour at least."""
    document, children = slow_run(hours_ago=1.5)
    standing, moves, since = Standing(), 0, NOW - timedelta(hours=1.5)
    for minute in range(0, 720, 10):
        now = NOW + timedelta(minutes=minute)
        nodes = [*l40s(1), *(h100(1) if minute % 20 else [])]
        seen = observed(nodes, document, children=children, standing=standing)
        found = decided(seen, now)
        standing, outcome = found.standing, found.outcomes[key("slow")]
        assert isinstance(outcome, Plan)
        if outcome.vacates:
            assert now - since >= timedelta(hours=1)
            moves, since = moves + 1, now
            document["status"]["observed"]["startTime"] = now.isoformat()
            gone = observed(nodes, document, standing=standing)
            standing = decided(gone, now).standing
    assert moves <= 12


def low_and_high(*others):
    """A node that a long run holds, and one of higher priority that waits for it."""
    low = job("low", 8, age_seconds=7200, **KEEPS)
    high = job("high", 8, priorityClassName="high")
    nodes = h100(1 + len(others))
    seen = observed(
        nodes,
        *(started(each, nodes, 2.0) for each in (low, *others)),
        high,
        children=running(nodes, low, *others),
        priority_classes=HIGH,
    )
    return replace(seen, training_jobs=[_longer(each) for each in seen.training_jobs])


def test_who_was_told_to_stop_is_not_kept_while_what_ran_is_still_there():
    """Its status tells no start any more; kept, its Job would be made anew once it is gone."""
    seen = low_and_high()
    standing = decided(seen).standing
    for each in seen.training_jobs:
        each.get("status", {}).pop("observed", None)
    again = decided(replace(seen, standing=standing))
    assert again.outcomes[key("low")].vacates
    gone = decided(replace(seen, children=[], standing=again.standing)).outcomes
    assert gone[key("high")].placed and not gone[key("low")].placed


def test_nobody_else_stops_for_the_same_one_while_pods_end():
    other = job("other", 8, age_seconds=7200, **KEEPS)
    seen = low_and_high(other)
    first = decided(seen)
    (stopped,) = (at.name for at in first.outcomes if first.outcomes[at].vacates)
    for each in seen.training_jobs:
        if each["metadata"]["name"] == stopped:
            each["status"].pop("observed")
    then = decided(replace(seen, standing=first.standing)).outcomes
    assert [at.name for at, plan in then.items() if plan.vacates] == [stopped]


def test_a_higher_priority_stops_who_keeps_checkpoints():
    found = decided(low_and_high()).outcomes
    assert (found[key("low")].vacates, found[key("low")].reason_code) == (True, "Preempted")
    assert "stopped for research/high" in found[key("low")].reason
    assert not found[key("high")].placed, "it starts once the accelerators are free"
    assert decided(low_and_high(), settings=Settings()).outcomes[key("low")].kept


def test_what_runs_at_an_equal_priority_is_not_stopped():
    seen = low_and_high()
    equal = [
        {**each, "spec": {**each["spec"], "priorityClassName": "high"}}
        for each in seen.training_jobs
    ]
    assert decided(replace(seen, training_jobs=equal)).outcomes[key("low")].kept


def _longer(document):
    """The same run, predicted to go on for days."""
    if "status" not in document:
        return document
    status = {**document["status"], "plan": {"totalSeconds": 300_000.0}}
    return {**document, "status": status}


def test_a_run_that_is_not_settled_is_looked_at_again_when_it_is():
    run, children = slow_run(hours_ago=0.5)
    seen = observed([*l40s(1), *h100(1)], run, children=children)
    assert decided(seen).look_again_at == NOW + timedelta(hours=0.5)
    assert decided(seen, settings=Settings()).look_again_at != NOW + timedelta(hours=0.5)


def test_a_start_at_the_end_of_the_calendar_fails_no_pass():
    """A status may be edited; nobody can be looked at again after the year 9999."""
    run, children = slow_run()
    run["status"]["observed"]["startTime"] = "9999-12-31T23:59:59Z"
    seen = observed([*l40s(1), *h100(1)], run, children=children)
    assert decided(seen).outcomes[key("slow")].kept


def test_of_several_the_first_that_settles_is_looked_at():
    nodes, runs = h100(2), [job(name, 8, **KEEPS) for name in ("early", "late")]
    begun = [started(run, nodes, hours) for run, hours in zip(runs, (0.75, 0.25), strict=True)]
    seen = observed(nodes, *begun, children=running(nodes, *runs))
    assert decided(seen).look_again_at == NOW + timedelta(hours=0.25)


def test_of_who_settles_and_who_waits_the_first_is_looked_at():
    nodes, run = h100(1), job("run", 8, **KEEPS)
    begun = started(run, nodes, 0.5)
    seen = observed(nodes, begun, job("waits", 8), children=running(nodes, run))
    for seconds in (60, 7200):
        lately = Standing(optimised=NOW.timestamp() - 30)
        settings = MAY.model_copy(update={"optimise_seconds": float(seconds)})
        found = decided(replace(seen, standing=lately), settings=settings)
        assert found.look_again_at == NOW + timedelta(seconds=min(seconds - 30, 1800))
