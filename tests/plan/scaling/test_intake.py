"""What a look is worth: live, idle, unknown and broken are four things."""

from dataclasses import replace

import pytest

from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase
from poolwise.plan.signals.state import State
from tests.plan.scaling.given import Fleet, sample

SERVES = {"h100": 12.0}
"""Requests per second of a replica, as the model has it."""


def looked(fleet, at_seconds=0.0, rate=0.0):
    seen = fleet.seen(at_seconds, rate)
    found = intake(Memory(), seen, SERVES)
    return Memory(samples=found.samples, met=found.met)


def test_flat_counters_of_all_replicas_are_idle_unless_something_runs():
    fleet = Fleet.of(3)
    assert intake(looked(fleet), fleet.seen(15.0, 0.0), SERVES).state is State.IDLE
    assert intake(looked(fleet), fleet.seen(15.0, 5.0), SERVES).state is State.LIVE


def test_one_replica_that_still_works_keeps_all_from_being_idle():
    """Its long answer moves no counter that is told at its end."""
    fleet = Fleet.of(3)
    seen = fleet.seen(15.0, 0.0)
    works = replace(seen.samples["h100-1"], running=1.0)
    found = intake(looked(fleet), replace(seen, samples={**seen.samples, "h100-1": works}), SERVES)
    assert found.state is State.LIVE


def test_a_first_look_and_a_replica_that_was_not_read_tell_nothing_of_the_load():
    fleet = Fleet.of(3)
    assert intake(Memory(), fleet.seen(0.0, 0.0), SERVES).state is State.UNKNOWN
    assert intake(looked(fleet), fleet.seen(15.0, 0.0, skipped=[1]), SERVES).state is State.UNKNOWN


def test_many_faults_are_one_bounded_sentence():
    seen = Fleet.of(200).seen(15.0, 0.0)
    broken = {each.name: f"{each.name}: refused" for each in seen.replicas}
    found = intake(Memory(), replace(seen, broken=broken), SERVES)
    assert found.state is State.BROKEN and not found.may_shrink
    assert found.reason.endswith("; and 197 more")


def test_arrivals_are_those_of_each_replica():
    fleet = Fleet.of(2)
    found = intake(looked(fleet), fleet.after(30.0).seen(15.0, 2.0), SERVES)
    told = [each.arrivals for each in found.by_replica.values()]
    assert told == [15.0, 15.0] and found.arrivals == 30.0


def test_who_lost_its_readiness_for_a_look_does_not_count_anew():
    """All that it served since it started is not of the last seconds."""
    fleet = Fleet.of(2).after(4000.0)
    memory = looked(fleet, 0.0)
    seen = fleet.after(30.0).seen(15.0, 2.0)
    away = replace(seen.replicas[0], phase=Phase.STARTING, ready_at_seconds=None)
    found = intake(memory, replace(seen, replicas=(away, seen.replicas[1])), SERVES)
    memory = Memory(samples=found.samples, met=found.met)
    seen = fleet.after(60.0).seen(30.0, 2.0)
    back = replace(seen.replicas[0], ready_at_seconds=28.0)
    found = intake(memory, replace(seen, replicas=(back, seen.replicas[1])), SERVES)
    assert found.arrivals == 15.0
    assert found.met == {"h100-0", "h100-1"}


def test_all_that_a_new_replica_counts_is_new():
    fleet = Fleet.of(2)
    one, both = fleet.seen(4000.0, 0.0), fleet.after(60.0).seen(4015.0, 2.0)
    found = intake(Memory(), replace(one, replicas=one.replicas[:1]), SERVES)
    memory = Memory(samples=found.samples, met=found.met)
    new = replace(both.replicas[1], requested_at_seconds=3940.0, ready_at_seconds=4005.0)
    found = intake(memory, replace(both, replicas=(both.replicas[0], new)), SERVES)
    assert found.arrivals == 60.0


def test_of_one_that_was_ready_for_long_and_is_read_for_the_first_time_nothing_is_new():
    """Its endpoint was closed till now: what it counted came over an hour."""
    one, both = Fleet.of(1).after(500.0), Fleet.of(2).after(1000.0)
    memory = looked(one, 4000.0)
    found = intake(memory, both.after(60.0).seen(4015.0, 2.0), SERVES)
    assert found.arrivals == 30.0
    assert found.met == {"h100-0", "h100-1"}


def test_what_a_replica_told_while_it_warmed_up_is_left_out():
    """Compilation and empty caches make its first requests slower than any later one."""
    fleet = Fleet.of(2)
    seen = fleet.after(60.0).seen(15.0, 2.0)
    new = replace(seen.replicas[1], ready_at_seconds=5.0)
    found = intake(looked(fleet), replace(seen, replicas=(seen.replicas[0], new)), SERVES)
    assert found.arrivals == 60.0
    assert found.warm is not None and found.warm.finished_requests == 30.0


def test_who_is_gone_is_forgotten():
    two = looked(Fleet.of(2))
    assert intake(two, Fleet.of(1).seen(15.0, 0.0), SERVES).met == {"h100-0"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"running": 1e6}, "h100-0: 1e+06 requests running cannot be true"),
        ({"waiting": 1e6}, "h100-0: 1e+06 requests waiting cannot be true"),
        ({"waiting": 5e4}, "h100-0: 50015 requests in that time cannot be true"),
    ],
)
def test_what_cannot_be_true_is_broken_and_nothing_of_it_is_used(changes, told):
    fleet = Fleet.of(2)
    memory, seen = looked(fleet), fleet.after(30.0).seen(15.0, 2.0)
    lie = replace(seen.samples["h100-0"], **changes)
    found = intake(memory, replace(seen, samples={**seen.samples, "h100-0": lie}), SERVES)
    assert found.state is State.BROKEN and not found.may_shrink
    assert found.reason == told
    assert (found.arrivals, found.waiting, "h100-0" in found.samples) == (15.0, 0.0, False)


def test_a_counter_that_jumped_is_counted_from_there():
    """One look says so, the next has nothing to be compared with, and then it goes on."""
    fleet = Fleet.of(2)
    memory, states, arrivals = looked(fleet), [], []
    for at_seconds in (15.0, 30.0, 45.0):
        fleet = fleet.after(30.0)
        seen = fleet.seen(at_seconds, 2.0)
        jumped = sample("h100-0", at_seconds, fleet.counts[0] + 1e6)
        found = intake(memory, replace(seen, samples={**seen.samples, "h100-0": jumped}), SERVES)
        memory = Memory(samples=found.samples, met=found.met)
        states.append(found.state)
        arrivals.append(found.arrivals)
    assert states == [State.BROKEN, State.LIVE, State.LIVE]
    assert arrivals == [15.0, 15.0, 30.0]


def test_a_great_burst_is_believed():
    """Forty times what the model says, of short prompts behind a new client."""
    fleet = Fleet.of(1)
    found = intake(looked(fleet), fleet.after(7000.0).seen(15.0, 2.0), SERVES)
    assert (found.state, found.arrivals) == (State.LIVE, 7000.0)
