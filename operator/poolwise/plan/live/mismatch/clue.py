"""What a detector says of one kind of mismatch at one look."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Mismatch(enum.StrEnum):
    """Kinds, in the order in which they are told; each is a reason of the condition
    ``AsPlanned``."""

    START_OVERDUE = "StartOverdue"
    """A replica has been starting for far longer than a start may take."""
    PREEMPTIONS = "Preemptions"
    """Requests lose their cache to others and are read again."""
    CACHE_PRESSURE = "KVCachePressure"
    """Requests wait while caches are full."""
    WARM_UP_BREACHES = "WarmUpBreaches"
    """Most requests that were late came to replicas that had just become ready."""
    TAIL_OUTGROWS_LOAD = "TailOutgrowsLoad"
    """The tail has become longer while each replica has no more to do."""
    MISPREDICTED = "Mispredicted"
    """Tokens take longer or shorter than the model's range allows."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A tail as it was while nothing was wrong, and the load that it was measured at."""

    target: str
    """As ``TTFT p99``: its latency and percentile."""
    percentile: float
    """That both windows have samples enough for."""
    seconds: float
    load: Mapping[str, float] = field(default_factory=dict)
    """What one replica had to do, by name (:mod:`.burden`)."""


@dataclass(frozen=True, slots=True)
class Clue:
    """One kind at one look. Between ``is_there`` and ``is_gone`` nothing changes."""

    mismatch: Mismatch
    is_there: bool
    """Beyond the threshold from which it is told."""
    is_gone: bool
    """Below the lower one, under which it is told no more."""
    told: str
    """One sentence with numbers and the advice."""
    baseline: Baseline | None = None
    """What it is measured against as long as it is told."""
