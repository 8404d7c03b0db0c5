"""Requests that lost their cache are no arrivals, though they wait in the same queue."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.preempted import waiting_again
from poolwise.plan.scaling.seen import Seen
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import Delta, between
from tests.plan.scaling.given import Fleet

SERVES = {"pool": 1.5}
NAME = "replica"


def engine(at_seconds, begun, ended, running, waiting=0, preempted=0):
    """What an engine tells; who waits for the first time and who waits again are one number."""
    return Sample(
        NAME,
        float(at_seconds),
        running=float(running),
        waiting=float(waiting),
        finished_requests=float(ended),
        preemptions=float(preempted),
        ttft_seconds=Histogram((float("inf"),), (float(begun),), float(begun)),
    )


def delta(known, sample):
    found = between(known, sample)
    assert isinstance(found, Delta)
    return found


def told(before, known, sample):
    return waiting_again(before, known, sample, delta(known, sample))


def test_who_is_preempted_waits_again_and_who_runs_again_does_not():
    full = engine(0, begun=100, ended=50, running=50)
    pushed = engine(10, begun=110, ended=55, running=35, waiting=23, preempted=20)
    assert told(0.0, full, pushed) == 20.0
    back = engine(20, begun=112, ended=70, running=34, waiting=30, preempted=20)
    assert told(20.0, pushed, back) == 8.0


def test_without_a_preemption_nobody_waits_again_whatever_gauges_say():
    full, noisy = engine(0, 100, 50, 50), engine(10, 110, 55, 48, waiting=30)
    assert told(0.0, full, noisy) == 0.0


def test_no_more_than_wait_at_all_wait_again():
    full = engine(0, begun=100, ended=50, running=50)
    noisy = engine(10, begun=110, ended=55, running=30, waiting=5, preempted=20)
    assert told(0.0, full, noisy) == 5.0


def test_an_engine_that_starts_anew_has_preempted_nobody():
    full = engine(0, begun=100, ended=50, running=50, waiting=10, preempted=30)
    anew = engine(10, begun=3, ended=1, running=2)
    assert delta(full, anew).is_restart
    assert told(10.0, full, anew) == 0.0


def test_an_engine_that_does_not_tell_who_runs_has_its_preempted_ones_waiting():
    full = replace(engine(0, 100, 50, 50), running=None)
    pushed = replace(engine(10, 110, 55, 35, waiting=23, preempted=20), running=None)
    assert told(0.0, full, pushed) == 20.0


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 10), st.integers(0, 10)),
        max_size=12,
    )
)
def test_exact_gauges_tell_exactly_who_came(steps):
    """Of each step: who came, who of them has a first token, who was preempted, who runs again."""
    memory, at = Memory(), engine(0, 0, 0, 0)
    begun = running = preempted = again = new = 0
    fleet = Fleet.of(1)
    (replica,) = fleet.seen(0.0, 0.0).replicas
    replica = replace(replica, name=NAME)
    for number, (came, first, pushed, back) in enumerate(((0, 0, 0, 0), *steps)):
        first = min(first, new + came)
        new += came - first
        pushed = min(pushed, running)
        back = min(back, again)
        begun, running = begun + first, running + first - pushed + back
        preempted, again = preempted + pushed, again + pushed - back
        at = engine(10 * number, begun, 0, running, new + again, preempted)
        taken = intake(memory, Seen(10.0 * number, (replica,), {NAME: at}), SERVES)
        memory = replace(memory, samples=taken.samples, waiting_again=taken.waiting_again)
        assert taken.arrivals == pytest.approx(came)
