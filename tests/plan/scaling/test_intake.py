"""What a look is worth: live, idle, unknown and broken are four things."""

from dataclasses import replace

from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.signals.state import State
from tests.plan.scaling.given import Fleet


def looked(fleet, at_seconds=0.0, rate=0.0):
    seen = fleet.seen(at_seconds, rate)
    return Memory(samples=intake(Memory(), seen).samples)


def test_flat_counters_of_all_replicas_are_idle_unless_something_runs():
    fleet = Fleet.of(3)
    assert intake(looked(fleet), fleet.seen(15.0, 0.0)).state is State.IDLE
    assert intake(looked(fleet), fleet.seen(15.0, 5.0)).state is State.LIVE


def test_a_first_look_and_a_replica_that_was_not_read_tell_nothing_of_the_load():
    fleet = Fleet.of(3)
    assert intake(Memory(), fleet.seen(0.0, 0.0)).state is State.UNKNOWN
    assert intake(looked(fleet), fleet.seen(15.0, 0.0, skipped=[1])).state is State.UNKNOWN


def test_many_faults_are_one_bounded_sentence():
    seen = Fleet.of(200).seen(15.0, 0.0)
    broken = {each.name: f"{each.name}: refused" for each in seen.replicas}
    found = intake(Memory(), replace(seen, broken=broken))
    assert found.state is State.BROKEN and not found.may_shrink
    assert found.reason.endswith("; and 197 more")


def test_arrivals_are_those_of_each_replica():
    fleet = Fleet.of(2)
    found = intake(looked(fleet), fleet.after(30.0).seen(15.0, 2.0))
    told = [each.arrivals for each in found.by_replica.values()]
    assert told == [15.0, 15.0] and found.arrivals == 30.0
