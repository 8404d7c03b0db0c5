"""What one pass leaves to the next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.plan.cluster import decide
from poolwise.plan.joint.planning import plan
from poolwise.plan.observed import Decisions
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, gpu_nodes, h100, job, key, observed, plan_of, running
from tests.plan.machines import CALIBRATION, TABLES


@pytest.mark.parametrize(
    ("last", "is_due"),
    [
        pytest.param(None, True, id="never-before"),
        pytest.param(1000.0, True, id="just-a-period-ago"),
        pytest.param(1000.5, False, id="lately"),
    ],
)
def test_the_optimiser_has_its_say_once_in_a_period(last, is_due):
    assert (Standing(optimised=last).due(60.0) <= 1060.0) is is_due


def test_passes_in_between_leave_it_as_it_was():
    settings = Settings(optimise_seconds=60.0)
    seen = observed(h100(1), *(job(name, 8) for name in ("first", "second")))
    moments = []
    for seconds in (0, 59, 61, 100, 121):
        now = NOW + timedelta(seconds=seconds)
        found = decide(seen, TABLES, settings, CALIBRATION, now)
        moments.append((found.standing.optimised or 0.0) - NOW.timestamp())
        seen = replace(seen, standing=found.standing)
    assert moments == [0, 0, 61, 61, 121]


def _passes(seen, *moments):
    """The pass at each of these moments, in seconds; each with the nodes that are there then."""
    found: list[Decisions] = []
    for seconds, nodes in moments:
        now, settings = NOW + timedelta(seconds=seconds), Settings(optimise_seconds=60.0)
        standing = found[-1].standing if found else Standing()
        seen = replace(seen, nodes=nodes, standing=standing)
        found.append(decide(seen, TABLES, settings, CALIBRATION, now))
    return found


def _booked(nodes):
    """A long run, and a short one that holds the first nodes for an hour and a half."""
    brief, long = ({"globalBatchSize": 256, "sequenceLength": 4096, "tokens": tokens}
                   for tokens in ("1G", "100G"))  # fmt: skip
    first, second = job("first", 16, training=brief), job("second", training=long)
    seconds = plan_of(nodes, first).chosen.total_seconds
    told = {"plan": {"totalSeconds": seconds}, "observed": {"startTime": NOW.isoformat()}}
    return observed(nodes, {**first, "status": told}, second, children=running(nodes, first))


@pytest.mark.parametrize(
    ("product", "starts"), [("NVIDIA-H100-80GB-HBM3", True), ("NVIDIA-L40S", False)]
)
def test_what_is_booked_is_no_reason_to_wait_beside_what_is_as_good(product, starts):
    """The wait is a small part of the run, and a restart of the operator would have ended it."""
    nodes = h100(1, per_node=16)
    more = [*nodes, *gpu_nodes("new", 1, product)]
    first, second = _passes(_booked(nodes), (0, nodes), (10, more))
    assert len(first.standing.reservations) == 1
    assert second.outcomes[key("second")].placed is starts
    assert second.standing.reservations == () or not starts


def test_passes_in_between_do_not_ask_the_optimiser(monkeypatch):
    asked = []

    def asks(problem, optimise):
        asked.append(optimise)
        return plan(problem, optimise)

    monkeypatch.setattr("poolwise.plan.queueing.queue.plan", asks)
    nodes = h100(1)
    seen = observed(nodes, *(job(name, 8) for name in ("first", "second")))
    _passes(seen, *((seconds, nodes) for seconds in (0, 59, 60)))
    assert asked == [True, False, True]


def test_who_waits_is_looked_at_once_more_when_the_optimiser_may_be_asked():
    """No event would ask for that pass; and what cannot start then is left alone."""
    nodes = h100(1)
    seen = observed(nodes, *(job(name, 8) for name in ("first", "second")))
    found = _passes(seen, *((seconds, nodes) for seconds in (0, 59, 60)))
    asks = NOW + timedelta(seconds=60)
    assert [each.look_again_at for each in found] == [None, asks, None]


def test_where_nobody_waits_nobody_looks_again():
    nodes = h100(2)
    seen = observed(nodes, *(job(name, 8) for name in ("first", "second")))
    found = _passes(seen, (0, nodes), (10, nodes))
    assert [each.look_again_at for each in found] == [None, None]
