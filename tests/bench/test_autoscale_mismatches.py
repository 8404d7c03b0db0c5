"""Mismatches in the replay: a whole fleet of simulated engines, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.autoscale import ours
from bench.autoscale.policy import View
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene
from poolwise.plan.live.mismatch.cache import CacheRoom
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.mismatch.detect import Circumstances, clues
from poolwise.plan.live.mismatch.history import History
from poolwise.plan.live.mismatch.watch import Watch
from poolwise.plan.live.overdue import Overdue
from poolwise.plan.scaling.seen import Phase
from poolwise.plan.scaling.service import Modelled
from tests.bench.autoscale_cases import step_scene

LOG_BAND = math.log(1.35)
"""About what the model claims of an accelerator with runs of its own."""


class Watched(ours.Ours):
    """Ours, or so many replicas, and whatever stood at any look."""

    def __init__(self, scene: Scene, fixed: int | None = None) -> None:
        super().__init__(ours.service(scene))
        self.kinds = set[Mismatch]()
        self._fixed, self._history, self._watch = fixed, History(), Watch()

    def desired(self, view: View) -> int:
        """The controller's answer, or the fixed one."""
        wanted = super().desired(view)
        seen = self.seen(view)
        ready = sum(each.phase is Phase.READY for each in seen.replicas)
        samples, now = seen.samples, seen.now_seconds
        self._history = self._history.after(samples, seen.replicas, now, wanted > ready)
        self._watch = self._watch.after(clues(self._history, self._watch, self._known()), now)
        self.kinds |= {kind for kind, _ in self._watch.told}
        return wanted if self._fixed is None else self._fixed

    def _known(self) -> Circumstances:
        pool = self._service.pools[0]
        assert isinstance(pool.predictor, Modelled)
        room = CacheRoom(pool.predictor.layout, pool.predictor.machine.device, "vllm", 8, False)
        slowness = self._memory.log_slowness.get(pool.name, 0.0)
        return Circumstances(self._service.targets, room, slowness, LOG_BAND, Overdue())


def told(scene: Scene, fixed: int | None = None) -> set[Mismatch]:
    """Of a whole replay."""
    watched = Watched(scene, fixed)
    replay(scene, watched)
    return watched.kinds


@pytest.mark.parametrize(("before", "after"), [(0.5, 2.0), (2.0, 0.5), (1.0, 1.0), (0.1, 4.0)])
def test_a_healthy_fleet_that_follows_its_load_has_none(before: float, after: float) -> None:
    assert told(step_scene(before, after)) == set()


def test_engines_that_are_slower_than_told_are() -> None:
    scene = step_scene(1.0, 1.0)
    slower = replace(scene, engine=scene.engine.slower(1.8))
    assert Mismatch.MISPREDICTED in told(slower)


def test_caches_that_are_too_small_for_the_batch_are() -> None:
    """A fortieth of the cache: long before the batch is full, no block is free."""
    scene = step_scene(3.0, 3.0)
    limits = scene.engine.limits
    small = replace(limits, kv_blocks=max(limits.kv_blocks // 40, 1))
    found = told(replace(scene, engine=replace(scene.engine, limits=small)), fixed=1)
    assert found & {Mismatch.CACHE_PRESSURE, Mismatch.PREEMPTIONS}


def test_an_overload_is_no_sick_engine() -> None:
    """One replica, and six times what it serves: late, and not for what an engine does."""
    assert Mismatch.TAIL_OUTGROWS_LOAD not in told(step_scene(0.3, 3.0), fixed=1)
