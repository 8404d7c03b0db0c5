"""Caches that are too small for what the engine takes in: requests wait, or lose their cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.model.formats import native_arithmetic
from poolwise.model.hardware import Device
from poolwise.model.work import ServingLayout
from poolwise.plan.children.engines import flag_of
from poolwise.plan.live.mismatch.clue import Clue, Mismatch
from poolwise.plan.live.mismatch.history import (
    FULL_SHARE,
    Gauges,
    History,
    covered_seconds,
    settled,
)
from poolwise.plan.wording import percent, three_digits

WINDOW_SECONDS = 600.0
LEAST_SECONDS = 300.0
"""Seen of it before anything is said."""
PRESSED, RELIEVED = 0.5, 0.2
"""Shares of looks at a full cache with requests waiting: told from, and told until."""
PREEMPTED, SPARED = 0.05, 0.01
"""Preemptions for each request: a few are what it costs to use a cache to the full; each makes the
engine read a prompt, and all that it answered, once more."""
LEAST_PREEMPTIONS = 10.0


@dataclass(frozen=True, slots=True)
class CacheRoom:
    """What decides how much a replica's cache holds."""

    layout: ServingLayout
    device: Device
    engine: str
    accelerators_per_node: int
    is_at_most: bool
    """Whether more replicas than there may be are wanted."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """That the user gives the engine: they win over what was planned."""


def cache_pressure(history: History, room: CacheRoom) -> Clue | None:
    """Full caches for much of the time while requests wait; None where that is not told."""
    recent = history.within(WINDOW_SECONDS)
    gauges = sum((each.gauges for each in recent), Gauges())
    if not gauges.looks or covered_seconds(recent) < LEAST_SECONDS:
        return None
    share = gauges.pressed / gauges.looks
    told = (
        f"caches of keys and values were over {percent(FULL_SHARE)} full with requests waiting in "
        f"{percent(share)} of the looks of {WINDOW_SECONDS / 60:.0f} min (on average "
        f"{percent(gauges.cache_share / gauges.looks)} full, "
        f"{three_digits(gauges.waiting / gauges.looks)} waiting per replica): {_more(room)}"
    )
    return Clue(Mismatch.CACHE_PRESSURE, share >= PRESSED, share <= RELIEVED, told)


def preemptions(history: History, room: CacheRoom) -> Clue | None:
    """Requests that lost their cache to others; None where that is not told."""
    recent = history.within(WINDOW_SECONDS)
    delta = settled(recent)
    if delta is None or delta.preemptions is None or covered_seconds(recent) < LEAST_SECONDS:
        return None
    ended = max(delta.finished_requests or 0.0, 1.0)
    share = delta.preemptions / ended
    told = (
        f"engines preempted {delta.preemptions:.0f} times in {WINDOW_SECONDS / 60:.0f} min, "
        f"{three_digits(100.0 * share)} for each hundred requests, and read those again: lower "
        f"{_sequences(room)}, or give more cache ({_more(room)})"
    )
    is_there = share >= PREEMPTED and delta.preemptions >= LEAST_PREEMPTIONS
    return Clue(Mismatch.PREEMPTIONS, is_there, share <= SPARED, told)


_SMALL_CACHES = {"vllm": "fp8", "sglang": "fp8_e5m2"}


def _sequences(room: CacheRoom) -> str:
    flag = flag_of(room.engine, "max_num_seqs")
    if not flag:
        return "how many sequences the engine runs at once"
    now = room.flags.get(flag) or room.layout.max_num_seqs
    return f"{flag} (now {now}) in engine.args"


def _more(room: CacheRoom) -> str:
    """What would give more room, of what is possible here."""
    ways = []
    if room.is_at_most:
        ways.append("allow more replicas (scaling.maxReplicas, or room in the pool)")
    layout = room.layout
    if not layout.cpu_cores and 2 * layout.count <= room.accelerators_per_node:
        ways.append(f"a larger parallelism.tensor (now {layout.tensor})")
    small = _SMALL_CACHES.get(room.engine)
    has_fp8 = native_arithmetic("fp8", room.device.peak_flops_per_second) is not None
    flag = flag_of(room.engine, "kv_format")
    if small and has_fp8 and "fp8" not in room.flags.get(flag, ""):
        ways.append(f"a cache in fp8 ({flag}={small} in engine.args)")
    ways.append(f"a smaller model.maxModelLength (now {layout.max_model_tokens})")
    return ", ".join(ways[:-1]) + f"{' or ' if ways[:-1] else ''}{ways[-1]}"
