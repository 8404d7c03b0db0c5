"""What the terms of supply do to a run: spot nodes are taken away, and work is lost with them.

A gang stops with its first node, so that ``n`` nodes are interrupted ``n`` times as often as one.
Each stop loses the work since the last checkpoint and the time of a restart. With interruptions
that come at random (rate ``r``), checkpoints every ``c`` and restarts of ``s``, a run of ``t``
takes, in the mean ::

    t / c * (1 / r + s) * (exp(r * c) - 1)        ~  t * (1 + r * (c / 2 + s))

(J. T. Daly, A higher order estimate of the optimum checkpoint interval, FGCS 22, 2006). A spec that
tells no checkpoints is taken to save at the API's default interval all the same, and told so: most
training code does, and nobody can know when it does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.plan.nodes.labels import SPOT
from poolwise.plan.pool import Pool
from poolwise.plan.wording import duration, percent, plural
from poolwise.settings import Settings

HOPELESS = 10.0
"""A run that takes so many times its undisturbed time is refused: nine tenths would be lost."""
ASSUMED_CHECKPOINT_SECONDS = 1800.0
"""Where the spec has no ``checkpoint``: the default of its ``interval``."""
_MOST_EXPONENT = 60.0
"""Of the growth; far beyond hopeless, and still a number."""


@dataclass(frozen=True, slots=True)
class Interruptions:
    """What interruptions are expected to do to one run."""

    nodes: int
    mean_seconds: float
    """From one interruption of the gang to the next."""
    undisturbed_seconds: float
    expected_seconds: float
    checkpoint_seconds: float
    """From one checkpoint to the next."""
    is_assumed: bool
    """Whether the spec tells of no checkpoint."""

    @property
    def lost_seconds(self) -> float:
        """What the run takes longer."""
        return self.expected_seconds - self.undisturbed_seconds

    @property
    def is_hopeless(self) -> bool:
        """Whether next to all work would be lost again."""
        return self.expected_seconds > HOPELESS * self.undisturbed_seconds

    def words(self) -> str:
        """What it means, in one clause."""
        often = duration(self.mean_seconds)
        told = f"on {plural(self.nodes, 'Spot node')} it is interrupted about every {often}"
        told += f" and goes back to a checkpoint up to {duration(self.checkpoint_seconds)} old"
        if self.is_assumed:
            told += " (assumed: spec.checkpoint is not set)"
        if self.is_hopeless:
            return f"{told}: it would hardly ever end"
        share = self.lost_seconds / self.undisturbed_seconds
        return f"{told}, which adds {percent(share)} to its time"


def interruptions(
    pool: Pool,
    nodes: int,
    run_seconds: float,
    checkpoint_seconds: float | None,
    settings: Settings,
) -> Interruptions | None:
    """What a run on so many nodes of the pool has to expect; None where nodes are its own."""
    per_hour = settings.spot_interruptions_per_node_hour * nodes
    if pool.capacity_type != SPOT or run_seconds <= 0 or per_hour <= 0:
        return None
    startup_seconds = pool.startup_seconds(settings.node_startup_seconds)
    restart_seconds = settings.restart_seconds + startup_seconds
    interval = checkpoint_seconds or ASSUMED_CHECKPOINT_SECONDS
    mean_seconds = 3600.0 / per_hour
    expected = expected_seconds(
        run_seconds, min(interval, run_seconds), 1.0 / mean_seconds, restart_seconds
    )
    is_assumed = not checkpoint_seconds
    return Interruptions(nodes, mean_seconds, run_seconds, expected, interval, is_assumed)


def expected_seconds(
    run_seconds: float, interval_seconds: float, per_second: float, restart_seconds: float
) -> float:
    """Mean time of a run that is interrupted at random and goes back to its last checkpoint.

    :param interval_seconds: from one checkpoint to the next.
    :param per_second: rate of the interruptions.

    >>> round(expected_seconds(36000.0, 1800.0, 1 / 36000.0, 600.0))
    37530
    """
    if per_second <= 0 or interval_seconds <= 0:
        return run_seconds
    growth = math.expm1(min(per_second * interval_seconds, _MOST_EXPONENT))
    stretch = (1.0 / per_second + restart_seconds) * growth
    return run_seconds / interval_seconds * stretch
