"""The least number of replicas."""

from __future__ import annotations

from dataclasses import replace

from poolwise.plan.scaling.level import Level
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.outlook import Outlook
from poolwise.plan.scaling.sizing import BEYOND_PEAK, WHILE_CLIMBING, Bounds, Ratios, need
from tests.plan.scaling.given import service

CALM, JUMPY = Bounds(1.0, 1.0, 1.0), Bounds(0.1, 0.1, 0.1)
HORIZON_SECONDS = 65.0
TOP = 6.0


def ahead(demand: float) -> Outlook:
    level = Level(10.0, 0.0, 1.0, 60.0)
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


def test_nobody_is_ready_for_far_more_than_there_ever_was():
    assert aim(remembered(top_at_seconds=3000.0)) == TOP * BEYOND_PEAK


def test_more_are_ready_while_demand_climbs_to_what_it_never_was():
    assert aim(remembered(top_at_seconds=3585.0)) == TOP * WHILE_CLIMBING


def test_the_first_minutes_are_no_climb():
    young = replace(remembered(top_at_seconds=3585.0), since_seconds=3500.0)
    assert aim(young) == TOP * BEYOND_PEAK
