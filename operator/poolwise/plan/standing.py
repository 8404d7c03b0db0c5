"""What one pass leaves to the next, so that decisions stand while they are carried out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.plan.conditions import Reason
from poolwise.plan.joint.problem import Option, Reservation, Share


@dataclass(frozen=True, slots=True)
class Departure:
    """Why something stops running."""

    reason_code: Reason
    reason: str
    option: Option | None = None
    """Where it goes; None: where there is room."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Others stopped in a pool to make room for somebody."""

    pool: str
    until: float
    """So long nobody else is stopped, and nobody of lower priority starts there: pods take time to
    end."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Of the queue, by workloads as sentences name them."""

    reservations: tuple[Reservation, ...] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    optimised: float | None = None
    """When the optimiser last had its say."""
    vacated: frozenset[str] = frozenset()
    """Who stopped to run elsewhere, and does not run yet."""
    leaving: Mapping[str, Departure] = field(default_factory=dict)
    """Who was told to stop, until what ran is gone: a pass in between would keep it, and it would
    be made anew as soon as it is gone."""
    promised: Mapping[str, Promise] = field(default_factory=dict)
    """For whom others stopped."""

    def due(self, period_seconds: float) -> float:
        """When it is the optimiser's turn again; long ago where it never had one."""
        return -math.inf if self.optimised is None else self.optimised + period_seconds
