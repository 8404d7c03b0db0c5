"""What holds a wish back: replicas that were needed lately, and changes of direction."""

from dataclasses import replace
from itertools import pairwise

import pytest

from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.restraint import Fleet, patience, restrained

USUAL = patience(60.0, 15.0)


def test_down_waits_for_what_was_needed_lately_and_turns_are_seldom():
    memory, held, changes = Memory(), 10.0, []
    for step in range(480):  # two hours in which the need swings each five minutes
        wanted = 10.0 if step // 20 % 2 else 5.0
        found = restrained(memory, 15.0 * step, Fleet(held, held), wanted, USUAL)
        if found.replicas != held:
            changes.append(found.replicas > held)
        memory, held = found.memory, float(found.replicas)
        assert held >= wanted
    turns = sum(one != other for one, other in pairwise(changes))
    assert 0 < turns <= 2 * 6


@pytest.mark.parametrize(
    ("start_seconds", "stay_seconds", "hold"),
    [(5.0, 15.0, 120.0), (60.0, 15.0, 120.0), (180.0, 15.0, 240.0), (60.0, 120.0, 240.0)],
)
def test_a_replica_is_held_until_it_is_seen_who_is_left(start_seconds, stay_seconds, hold):
    memory, step = Memory(), 15.0
    usual = patience(start_seconds, stay_seconds)
    assert usual.ready_seconds == hold
    for moment in range(100):
        wanted = 4.0 if moment == 0 else 2.0
        found = restrained(memory, step * moment, Fleet(4.0, 4.0), wanted, usual)
        memory = found.memory
        if found.replicas < 4.0:
            break
    assert hold < step * moment <= hold + step


def test_a_fleet_that_idles_is_let_go_though_it_changed_its_direction_twice_before():
    now = 4000.0
    before = replace(Memory(), turns=(now - 2500.0, now - 1000.0), direction=1)

    def later(wanted, seconds):
        memory, held = before, 8.0
        for step in range(int(seconds / 15.0)):
            found = restrained(memory, now + 15.0 * step, Fleet(held, held), wanted, USUAL)
            memory, held = found.memory, found.replicas
        return held

    assert later(7.0, 600.0) == 8.0
    assert later(5.0, 600.0) == 8.0
    assert later(1.0, 600.0) == 1.0


def _given_up(start_seconds, ready):
    """When a fleet of 8 that was asked for once becomes smaller, and how many are left then."""
    memory, usual = Memory(), patience(start_seconds, 15.0)
    for moment in range(0, 600, 5):
        wanted = 8.0 if moment == 0 else 3.0
        found = restrained(memory, float(moment), Fleet(8.0, ready), wanted, usual)
        memory = found.memory
        if found.replicas < 8.0:
            return moment, found.replicas
    return None


@pytest.mark.parametrize(
    ("start_seconds", "given_up_seconds"), [(20.0, 30.0), (60.0, 30.0), (180.0, 90.0)]
)
def test_what_starts_is_given_up_once_it_was_not_wanted_for_half_a_start(
    start_seconds, given_up_seconds
):
    assert _given_up(start_seconds, ready=5.0) == (given_up_seconds + 5.0, 5.0)
    assert _given_up(start_seconds, ready=2.0) == (given_up_seconds + 5.0, 3.0)


def test_what_serves_is_held_for_longer_than_what_starts():
    moment, left = _given_up(180.0, ready=8.0)
    assert (moment, left) == (245.0, 3.0)


def test_giving_up_counts_as_a_change_of_direction():
    memory, usual, ups = Memory(), patience(60.0, 15.0), 0
    held = 5.0
    for moment in range(0, 3600, 5):  # a wish that comes and goes each two minutes
        wanted = 9.0 if moment % 120 < 5 else 5.0
        found = restrained(memory, float(moment), Fleet(held, 5.0), wanted, usual)
        ups += found.replicas > held
        memory, held = found.memory, found.replicas
    assert 1 <= ups <= 4
