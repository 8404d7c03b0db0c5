"""What the lack of a number means: nothing to do, nothing known, or a broken source.

Treating the three alike is how autoscalers shrink a service whose metrics are gone. Idle may
shrink; unknown holds; broken holds and says so.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from poolwise.plan.signals.window import Delta, WentBack, joined

SHOWN = 3
"""Reasons that one sentence repeats."""


class State(enum.StrEnum):
    """What is known of the load of a service."""

    LIVE = "Live"
    """Requests arrive or are served, and every replica tells of them."""
    IDLE = "Idle"
    """Every replica was read, and no counter moved, nothing runs, nothing waits."""
    UNKNOWN = "Unknown"
    """No replica was looked at twice yet."""
    BROKEN = "Broken"
    """A replica that should tell could not be read, or told nonsense."""


@dataclass(frozen=True, slots=True)
class Load:
    """What came over all replicas in a window, and how far it is to be believed."""

    state: State
    reason: str
    delta: Delta | None
    """Of those replicas that told; a lower bound of the load where the state is broken."""
    told: int
    """Replicas that it is the sum of."""


def load_of(
    windows: Mapping[str, Sequence[Delta | WentBack]],
    broken: Mapping[str, str],
    busy: Collection[str] = (),
) -> Load:
    """Judge what replicas told.

    :param windows: of each replica that serves, what came between its looks in the window.
    :param broken: why a replica that serves could not be read, by its name.
    :param busy: replicas whose newest look shows running or waiting requests.
    """
    faults = {**_faults(windows), **broken}
    parts = {
        replica: delta
        for replica, found in windows.items()
        if (delta := joined([each for each in found if isinstance(each, Delta)])) is not None
    }
    delta = joined(tuple(parts.values()))
    if faults:
        return Load(State.BROKEN, _sentence(faults), delta, len(parts))
    if delta is None or len(parts) < len(windows):
        missing = sorted(windows.keys() - parts.keys())
        reason = (
            f"not looked at twice yet: {', '.join(missing[:SHOWN])}" if missing else "no replica"
        )
        return Load(State.UNKNOWN, reason, delta, len(parts))
    if delta.is_flat and not busy:
        return Load(State.IDLE, "every replica was read, and no counter moved", delta, len(parts))
    return Load(State.LIVE, f"read from {len(parts)} replicas", delta, len(parts))


def _faults(windows: Mapping[str, Sequence[Delta | WentBack]]) -> dict[str, str]:
    """Where the newest span is unusable; an older one has been lived through."""
    return {
        replica: str(found[-1])
        for replica, found in windows.items()
        if found and isinstance(found[-1], WentBack)
    }


def _sentence(faults: Mapping[str, str]) -> str:
    shown = "; ".join(faults[replica] for replica in sorted(faults)[:SHOWN])
    more = len(faults) - SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown
