"""From clues to what is told: only what lasts, and no less long than it takes to look for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from poolwise.plan.live.mismatch.clue import Baseline, Clue, Mismatch

LASTING_SECONDS: Mapping[Mismatch, float] = {
    Mismatch.START_OVERDUE: 0.0,  # its age has lasted already
    Mismatch.WARM_UP_BREACHES: 0.0,  # it is of half an hour
    Mismatch.MISPREDICTED: 600.0,  # what it follows fades within minutes
}
USUAL_LASTING_SECONDS = 120.0
"""For which a clue has to be there at each look, beside the window that it is of."""
GONE_SECONDS = 600.0
"""For which it has to be gone before it is told no more."""
UNKNOWN_SECONDS = 3600.0
"""Without anything being known of it, until it is told no more."""
REWORDED_SECONDS = 900.0
"""Figures alone are not told more often."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A mismatch that is told."""

    told: str
    since_seconds: float
    worded_seconds: float
    known_seconds: float
    """When a look last showed anything of it."""
    gone_since_seconds: float | None = None
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """What lasts already, and what may come to."""

    pending: Mapping[Mismatch, float] = field(default_factory=dict)
    """Since when a clue has been there at each look."""
    raised: Mapping[Mismatch, Raised] = field(default_factory=dict)

    @property
    def told(self) -> tuple[tuple[Mismatch, str], ...]:
        """In the order in which they are told."""
        return tuple((each, self.raised[each].told) for each in Mismatch if each in self.raised)

    def baseline(self, mismatch: Mismatch) -> Baseline | None:
        """What a mismatch that is told is measured against."""
        found = self.raised.get(mismatch)
        return found.baseline if found else None

    def after(self, clues: Iterable[Clue], now_seconds: float) -> Watch:
        """One look later; of what no clue speaks nothing is known now."""
        by_kind = {clue.mismatch: clue for clue in clues}
        pending, raised = dict[Mismatch, float](), dict[Mismatch, Raised]()
        for kind in Mismatch:
            clue, before = by_kind.get(kind), self.raised.get(kind)
            if before is not None:
                kept = _still(before, clue, now_seconds)
                if kept is not None:
                    raised[kind] = kept
            elif clue is not None and clue.is_there:
                since = self.pending.get(kind, now_seconds)
                if now_seconds - since >= LASTING_SECONDS.get(kind, USUAL_LASTING_SECONDS):
                    raised[kind] = _new(clue, now_seconds)
                else:
                    pending[kind] = since
        return Watch(pending, raised)


def _new(clue: Clue, now_seconds: float) -> Raised:
    return Raised(clue.told, now_seconds, now_seconds, now_seconds, None, clue.baseline)


def _still(before: Raised, clue: Clue | None, now_seconds: float) -> Raised | None:
    """None once it has been gone, or unknown, for long enough."""
    if clue is None:
        is_forgotten = now_seconds - before.known_seconds >= UNKNOWN_SECONDS
        return None if is_forgotten else before
    gone_since = None
    if clue.is_gone:
        since = before.gone_since_seconds
        gone_since = now_seconds if since is None else since
        if now_seconds - gone_since >= GONE_SECONDS:
            return None
    known = replace(before, known_seconds=now_seconds, gone_since_seconds=gone_since)
    if clue.is_there and now_seconds - before.worded_seconds >= REWORDED_SECONDS:
        return replace(known, told=clue.told, worded_seconds=now_seconds)
    return known
