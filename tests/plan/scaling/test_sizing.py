"""The least number of replicas."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.level import Level
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.outlook import Outlook
from poolwise.plan.scaling.restraint import restrained
from poolwise.plan.scaling.sizing import (
    BEYOND_PEAK,
    CALM_SECONDS,
    READY_TIMES,
    UNCALM_SECONDS,
    WHILE_CLIMBING,
    Bounds,
    Need,
    Ratios,
    need,
    ratios,
)
from tests.plan.scaling.given import service

CALM, JUMPY = Bounds(1.0, 1.0, 1.0), Bounds(0.1, 0.1, 0.1)
HORIZON_SECONDS = 65.0
TOP = 6.0


def ahead(demand: float) -> Outlook:
    level = Level(10.0, 0.0, 60.0)
    return Outlook(level, HORIZON_SECONDS, demand, demand, demand, demand, 0.0, demand)


def remembered(top_at_seconds: float, now_seconds: float = 3600.0) -> Memory:
    """A service whose highest demand was at a moment; it had half of it at all others."""
    moments = [now_seconds - 15.0 * step for step in range(60, -1, -1)]
    bins = tuple(
        Bin(at, 15.0, 150.0, demand=TOP if at == top_at_seconds else TOP / 2.0) for at in moments
    )
    return Memory(since_seconds=0.0, bins=bins, peak=TOP)


def aim(memory: Memory) -> float:
    """Where forecasts have failed so often that ten times as many would be taken."""
    return need(service(), memory, ahead(TOP), Ratios(JUMPY, CALM, swing=0.0)).aim


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (1.9, 3.0),  # too few: as many start as are aimed at
        (2.0, 2.0),
        (4.0, 4.0),  # between the two nothing changes
        (5.0, 5.0),
        (6.0, 5.0),  # too many: those above what is enough may leave
    ],
)
def test_between_too_few_and_too_many_what_is_there_stays(held, wanted):
    assert Need(least=2.0, aim=3.0, enough=5.0, borne=1.0).of(held) == wanted


def test_who_leaves_never_leaves_too_few():
    """What is enough for a calm hour may be less than what a queue asks for now."""
    assert Need(least=4.0, aim=5.0, enough=3.0, borne=1.0).of(6.0) == 4.0


def test_nobody_is_ready_for_far_more_than_there_ever_was():
    assert aim(remembered(top_at_seconds=3000.0)) == TOP * BEYOND_PEAK


def test_after_a_leap_nobody_is_ready_for_another_with_each_low():
    low = TOP / 10.0
    found = need(service(), remembered(3000.0), ahead(low), Ratios(JUMPY, CALM, swing=0.0))
    assert found.least == found.aim == found.enough == pytest.approx(READY_TIMES * low)
    assert found.borne == pytest.approx(1.0 / READY_TIMES)


def test_what_a_replica_bears_is_what_is_foreseen_over_what_is_aimed_at():
    """Beside what works off a queue and may fail, and of a small fleet less."""
    steady, bursty = (
        need(service(redundancy=1), remembered(3000.0), ahead(1.0), Ratios(half, CALM, swing))
        for half, swing in ((Bounds(0.5, 0.5, 0.5), 0.0), (Bounds(0.5, 0.5, 0.5), 0.5))
    )
    assert (steady.aim, steady.borne) == (3.0, 0.5)
    assert bursty.borne == pytest.approx(1.0 / (bursty.aim - 1.0)) and bursty.borne < 0.5
    assert need(service(), Memory(), ahead(0.0), Ratios(CALM, CALM, swing=0.0)).borne == 1.0


def test_more_are_ready_while_demand_climbs_to_what_it_never_was():
    assert aim(remembered(top_at_seconds=3585.0)) == TOP * WHILE_CLIMBING


def test_the_first_minutes_are_no_climb():
    young = replace(remembered(top_at_seconds=3585.0), since_seconds=3500.0)
    assert aim(young) == TOP * BEYOND_PEAK


def needed(raised_seconds: float | None, now_seconds: float = 3600.0) -> tuple[float, float, float]:
    """What is least, asked for and enough, where more were last asked for at a moment."""
    given = service()
    memory = replace(remembered(3000.0, now_seconds), raised_seconds=raised_seconds)
    able = capability(
        given.pools[0].predictor, given.pools[0].predictor.prior_mix, given.targets, 1.0
    )
    found = need(given, memory, ahead(TOP), ratios(given, memory, able, ahead(TOP)))
    return found.least, found.aim, found.enough


def test_who_has_not_risen_for_long_lets_go_closer_to_what_would_be_started():
    rising, settling, calm = (
        needed(3600.0 - seconds) for seconds in (UNCALM_SECONDS, 900.0, CALM_SECONDS)
    )
    assert rising[:2] == settling[:2] == calm[:2]
    assert rising[2] > settling[2] > calm[2] > calm[1]
    assert needed(3600.0) == needed(3590.0) == rising


def test_a_service_that_never_rose_counts_from_its_beginning():
    assert needed(None) == needed(0.0) == needed(3600.0 - CALM_SECONDS)
    assert needed(None, now_seconds=UNCALM_SECONDS)[2] == needed(3600.0)[2]


def test_a_rise_is_remembered_over_a_restart():
    raised = restrained(Memory(), 700.0, held=2.0, wanted=3.0, hold_seconds=120.0).memory
    fallen = restrained(raised, 900.0, held=3.0, wanted=2.0, hold_seconds=120.0).memory
    assert raised.raised_seconds == fallen.raised_seconds == 700.0
    document = json.loads(json.dumps(fallen.as_mapping()))
    assert Memory.read(document).calm_seconds(1000.0) == pytest.approx(300.0)
    del document["raisedSeconds"]
    assert Memory.read(document).raised_seconds is None
