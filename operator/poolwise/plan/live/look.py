"""What one look at a service found and decided, for those who tell of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.live.keeping import Signal
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.reading import mapping
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.scaling.memory import Memory


class Mode(enum.StrEnum):
    """``spec.scaling.mode``."""

    DIRECT = "Direct"
    EXTERNAL = "External"
    OFF = "Off"


def mode_of(service: Object) -> Mode:
    """As the spec of a service says, or by default."""
    told = mapping(service, "spec", "scaling").get("mode", Mode.DIRECT)
    return Mode(told) if told in set(Mode) else Mode.DIRECT


@dataclass(frozen=True, slots=True)
class Rival:
    """Another autoscaler on the same service."""

    who: str
    """A clause that names it."""
    acts: bool = True
    """Whether replicas follow what it sets: not ``spec.replicas`` in the mode Direct."""

    @property
    def clause(self) -> str:
        """Why the number is what it is."""
        if self.acts:
            return f", as set by {self.who}"
        return f" as before: {self.who} sets spec.replicas, which has no effect in the mode Direct"

    @property
    def problem(self) -> str:
        """What is wrong about it and what to do, in a sentence."""
        if self.acts:
            told = f"{self.who} scales it too: it sets the number of replicas until one of the two"
            return f"{told} is removed"
        remedy = "set scaling.mode to External to have it followed, or delete that autoscaler"
        return f"their number stays{self.clause}, and so nobody scales them; {remedy}"


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why a number of replicas stays as it is, whatever the load."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a service and what was decided, for people."""

    decision: Decision
    mode: Mode
    declared: int
    """Replicas that what runs them is told to have, by whomever."""
    told: int
    """Replicas whose metrics were read."""
    failing: Mapping[str, str]
    """Why replicas could not be read for several looks in a row, by name."""
    conflict: Rival | None
    """Who else scales it; None: nobody."""
    now: datetime
    signals: Sequence[Signal] = ()
    """How its targets are kept."""
    missed: int = 0
    """Replicas that told before, and were not read at the newest look or two: packets get lost."""
    refused: str = ""
    """What was read for several looks in a row and is not believed, with the replica's name."""
    mismatches: Sequence[tuple[Mismatch, str]] = ()
    """What is wrong beside the number, most telling first, with the sentence."""
    memory: str = ""
    """What the controller has learned, for the next process."""
    by_pool: Mapping[str, int] = field(default_factory=dict)
    """Replicas on each pool, as they are planned now."""
    least: int = 0
    """Replicas that ``minReplicas`` asks for."""
    most: int | None = None
    """Replicas that ``maxReplicas`` allows; None: nobody knows."""
    standstill: Standstill | None = None
    """Why the number stays as it is, whatever the load; None: it follows it."""
    is_asleep: bool = False
    """Whether it has no replica, and none is asked for yet: then its gateway alone tells."""
    is_heard: bool = False
    """Whether the gateway before it told of its queue."""
    zero: Condition | None = None
    """``ScalesToZero`` of one that asks for it."""
    gateway: Mapping[str, Any] = field(default_factory=dict)
    """For ``status.scaling.gateway``; empty where none stands before it."""

    @property
    def replicas(self) -> int:
        """Wanted from now on; where somebody else scales as well, what that one set."""
        return self.declared if self.conflict else self.decision.replicas

    @property
    def reason(self) -> str:
        """Of that number: one sentence."""
        if self.conflict:
            return f"{self.declared}{self.conflict.clause}"
        if self.standstill is None and self.is_blind:
            return f"{self.replicas} as before: no replica reports metrics"
        return self.decision.reason

    @property
    def is_measured(self) -> bool:
        """Whether replicas tell, as far as single looks can say."""
        return bool(self.told or self.missed)

    @property
    def is_blind(self) -> bool:
        """Whether it does not sleep, and neither its replicas nor its gateway tell."""
        return not (self.is_measured or self.is_asleep or self.is_heard)

    @property
    def moves(self) -> bool:
        """Whether the number that was decided is one to go by."""
        is_known = bool(self.told) or self.is_asleep or self.is_heard
        return is_known and not self.conflict and self.standstill is None


def standing(by_pool: Mapping[str, int], why: Standstill) -> Decision:
    """A decision for the replicas that there are."""
    return Decision(sum(by_pool.values()), Memory(), why.message, by_pool)


def failed(error: Exception) -> Standstill:
    """Of a decision that nobody got, since it cannot be right to guess."""
    told = f"the decision failed ({type(error).__name__}: {error})"
    return Standstill(
        Reason.DECISION_FAILED,
        f"{told}: the number of replicas stays; the operator's log has more",
    )
