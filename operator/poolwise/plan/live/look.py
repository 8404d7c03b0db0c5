"""What one look at a service found and decided, for those who tell of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.observed import Object
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.status.figures import part


class Mode(enum.StrEnum):
    """``spec.scaling.mode``."""

    DIRECT = "Direct"
    EXTERNAL = "External"
    OFF = "Off"


def mode_of(service: Object) -> Mode:
    """As the spec of a service says, or by default."""
    told = part(part(service, "spec"), "scaling").get("mode", Mode.DIRECT)
    return Mode(told) if told in set(Mode) else Mode.DIRECT


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a service and what was decided, for people."""

    decision: Decision
    mode: Mode
    held: int
    """Replicas that the service has, draining ones apart."""
    told: int
    """Replicas whose metrics were read."""
    failing: Mapping[str, str]
    """Why replicas could not be read for several looks in a row, by name."""
    conflict: str | None
    """Who else scales it; None: nobody."""
    now: datetime
    mismatches: Sequence[tuple[Mismatch, str]] = ()
    """What is wrong beside the number, most telling first, with the sentence."""
    memory: str = ""
    """What the controller has learned, for the next process."""
    by_pool: Mapping[str, int] = field(default_factory=dict)
    """Replicas on each pool, as they are planned now."""

    @property
    def replicas(self) -> int:
        """Wanted from now on; where somebody else scales as well, what there is."""
        return self.held if self.conflict else self.decision.replicas
