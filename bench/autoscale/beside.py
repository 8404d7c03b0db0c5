"""Ours beside the best static fleet of the same scene, which hindsight sized."""

from __future__ import annotations

from dataclasses import dataclass

from bench.autoscale import suite
from bench.autoscale.outcome import Outcome
from bench.autoscale.reach import aim
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import BEST_STATIC


@dataclass(frozen=True, slots=True)
class Beside:
    """What became of both."""

    aim: float
    ours: Outcome
    static: Outcome

    @property
    def is_in_time(self) -> bool:
        """Whether ours attains the aim."""
        return self.ours.attainment >= self.aim

    @property
    def cost(self) -> float:
        """Of ours, over the best static fleet's."""
        return self.ours.replica_hours / self.static.replica_hours


def replayed(scene: Scene) -> tuple[float, Outcome, Outcome]:
    """The aim there, ours, and the best static fleet, as :class:`Beside` has them."""
    ours, static = (suite.result(scene, each).outcome for each in (suite.OURS, BEST_STATIC))
    return aim(scene), ours, static
