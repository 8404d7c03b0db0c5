"""From a look at the replicas to what came since the last one, and how far it is believed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from poolwise.plan.scaling.doubt import doubt, most_requests
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.told import Told, arrived, begun, told
from poolwise.plan.signals.plausible import implausible
from poolwise.plan.signals.sample import Sample
from poolwise.plan.signals.state import State
from poolwise.plan.signals.window import Delta, WentBack, between, joined

NEW_SECONDS = 60.0
"""Before the last look, when a replica may have become ready without having been read by then."""
STALE_SECONDS = 90.0
"""Age of a sample from which it tells nothing of now: six scrapes of the usual 15 s."""
SHOWN = 3
"""Reasons that one sentence repeats."""


@dataclass(frozen=True)
class Intake:
    """What came since the last look."""

    state: State
    reason: str
    seconds: float
    """Since the last look; 0 at the first one, and where nothing newer was read."""
    arrivals: float
    """Requests that came to replicas that told."""
    waiting: float
    """Requests in queues of replicas that serve and do not drain."""
    ready: int
    """Replicas that serve and do not drain."""
    running: Mapping[str, float]
    """In the batch of one replica on average, by pool."""
    by_pool: Mapping[str, Delta]
    """What replicas told that do not warm up, pool by pool."""
    by_replica: Mapping[str, Told]
    """What each replica told that serves, draining ones included."""
    samples: Mapping[str, Sample]
    """Used now, for the next look."""
    met: frozenset[str] = frozenset()
    """Replicas that are there and were ever read."""
    waiting_again: Mapping[str, float] = field(default_factory=dict)
    """At each replica, of those that wait (:mod:`.preempted`)."""

    def kept_tokens(self, context_tokens: float) -> float:
        """By which caches of replicas that stay grew since the last look.

        :param context_tokens: of a usual sequence, for engines that tell no lengths.
        """
        staying = (each for each in self.by_replica.values() if not each.is_draining)
        return math.fsum(each.kept_tokens(context_tokens) for each in staying)

    @property
    def broken_off(self) -> float:
        """Over many looks the noise of gauges cancels: each is the end of one difference and the
        beginning of the next."""
        return math.fsum(each.broken_off for each in self.by_replica.values())

    @property
    def may_shrink(self) -> bool:
        """Nothing is missing and nothing is broken."""
        return self.state in (State.LIVE, State.IDLE)

    @property
    def warm(self) -> Delta | None:
        """Of all pools."""
        return joined(tuple(self.by_pool.values()))


@dataclass(frozen=True)
class _Read:
    """Replicas that serve, with what can be believed of them."""

    ready: list[ReplicaSeen]
    serving: list[ReplicaSeen]
    fresh: Mapping[str, Sample]
    since: Mapping[str, Delta | WentBack]
    """What came since the last look at each, where it is newer."""
    doubts: Mapping[str, str]


def intake(memory: Memory, seen: Seen, serves: Mapping[str, float]) -> Intake:
    """Compare this look with the remembered one.

    :param serves: requests per second that a replica serves, by pool.
    """
    read = _read(memory, seen, serves)
    ready, fresh, known = read.ready, read.fresh, memory.samples
    seconds = _newest(fresh.values()) - _newest(known.values())
    seconds = max(seconds, 0.0) if known and fresh else 0.0
    found = read.since if seconds else {}
    faults = {**_faults(read, seen), **_went_back(found)}
    deltas = {name: delta for name, delta in found.items() if isinstance(delta, Delta)}
    new = _begun_in_new(ready, memory, fresh) if seconds else 0.0
    before, now_seconds = memory.waiting_again, seen.now_seconds
    by_replica = {
        each.name: told(
            each, known[each.name], fresh[each.name], deltas[each.name],
            before.get(each.name, 0.0), now_seconds,
        )
        for each in read.serving
        if each.name in deltas
    }  # fmt: skip
    looks = [fresh[each.name] for each in ready if each.name in fresh]
    state, reason = _judged(ready, memory, faults, deltas, looks)
    silent = len(ready) / max(len(looks), 1)
    arrivals = new + sum(each.arrivals for each in by_replica.values())
    return Intake(
        state=state,
        reason=reason,
        seconds=seconds,
        arrivals=max(arrivals, 0.0),
        waiting=silent * sum(sample.waiting or 0.0 for sample in looks),
        ready=len(ready),
        running=_running(ready, fresh),
        by_pool=dict(_warm(by_replica.values())),
        by_replica=by_replica,
        samples=fresh if seconds or not memory.samples else memory.samples,
        met=_met(memory, seen, fresh),
        waiting_again=_waiting_again(by_replica) if seconds else before,
    )


def _waiting_again(by_replica: Mapping[str, Told]) -> dict[str, float]:
    return {name: each.waiting_again for name, each in by_replica.items()}


def _read(memory: Memory, seen: Seen, serves: Mapping[str, float]) -> _Read:
    serving = [each for each in seen.replicas if each.phase is not Phase.STARTING]
    offered = [
        each for each in serving if each.name in seen.samples and each.name not in seen.broken
    ]
    since = {
        each.name: delta
        for each in offered
        if (known := memory.samples.get(each.name))
        and (delta := between(known, seen.samples[each.name])) is not None
    }
    doubts = {
        each.name: why
        for each in offered
        if (why := _doubt(memory, seen, each, since.get(each.name), serves.get(each.pool, 0.0)))
    }
    believed = [each.name for each in offered if each.name not in doubts]
    return _Read(
        [each for each in serving if each.phase is Phase.READY],
        serving,
        {name: seen.samples[name] for name in believed},
        {name: since[name] for name in believed if name in since},
        doubts,
    )


def _doubt(
    memory: Memory,
    seen: Seen,
    replica: ReplicaSeen,
    delta: Delta | WentBack | None,
    requests_per_second: float,
) -> str | None:
    """Against the last look at it, or against all that may have come since it was asked for."""
    known, sample = memory.samples.get(replica.name), seen.samples[replica.name]
    if problem := implausible(sample):
        return f"{replica.name}: {problem}"
    if known is None:
        seconds, arrivals = seen.now_seconds - replica.requested_at_seconds, begun(sample)
    elif isinstance(delta, Delta):
        seconds, arrivals = delta.seconds, arrived(known, sample, delta)
    else:
        return None
    return doubt(sample, arrivals, most_requests(requests_per_second, seconds))


def _met(memory: Memory, seen: Seen, fresh: Mapping[str, Sample]) -> frozenset[str]:
    """With those of this look, without those that are gone."""
    there = {each.name for each in seen.replicas}
    return frozenset((memory.met & there) | fresh.keys())


def _newest(samples: Iterable[Sample]) -> float:
    return max((each.at_seconds for each in samples), default=0.0)


def _faults(read: _Read, seen: Seen) -> dict[str, str]:
    """Ready replicas that cannot be believed, did not tell, or told long ago."""
    faults, unbelieved = {}, {**read.doubts, **seen.broken}
    for name in (each.name for each in read.ready):
        sample = read.fresh.get(name)
        if name in unbelieved:
            faults[name] = unbelieved[name]
        elif sample is not None and seen.now_seconds - sample.at_seconds > STALE_SECONDS:
            faults[name] = f"{name}: last read {seen.now_seconds - sample.at_seconds:.0f} s ago"
    return faults


def _went_back(found: Mapping[str, Delta | WentBack]) -> dict[str, str]:
    return {name: str(each) for name, each in found.items() if isinstance(each, WentBack)}


def _judged(
    ready: list[ReplicaSeen],
    memory: Memory,
    faults: Mapping[str, str],
    deltas: Mapping[str, Delta],
    looks: list[Sample],
) -> tuple[State, str]:
    """Idle may shrink, unknown holds, broken holds and says so."""
    if faults:
        shown = "; ".join(faults[name] for name in sorted(faults)[:SHOWN])
        more = len(faults) - SHOWN
        return State.BROKEN, f"{shown}; and {more} more" if more > 0 else shown
    if len(looks) < len(ready):
        return State.UNKNOWN, f"{len(ready) - len(looks)} of {len(ready)} replicas not read yet"
    if ready and not memory.samples:
        return State.UNKNOWN, "first look"
    is_flat = bool(deltas) and all(each.is_flat for each in deltas.values())
    if is_flat and len(deltas) >= len(ready) and not any(each.in_flight for each in looks):
        return State.IDLE, "every replica was read, and no counter moved"
    return State.LIVE, f"read from {len(looks)} replicas"


def _running(ready: list[ReplicaSeen], fresh: Mapping[str, Sample]) -> dict[str, float]:
    counts: dict[str, list[float]] = {}
    for each in ready:
        if each.name in fresh:
            counts.setdefault(each.pool, []).append(fresh[each.name].running or 0.0)
    return {pool: sum(each) / len(each) for pool, each in counts.items()}


def _begun_in_new(ready: list[ReplicaSeen], memory: Memory, fresh: Mapping[str, Sample]) -> float:
    """Of a replica that became ready since the last look, all that it counted is new.

    Of one that was not read till now for another reason, nothing can be told, nor of one that was
    ready before: it counts since it started, long before it lost its readiness for a moment.
    """
    since = _newest(memory.samples.values()) - NEW_SECONDS
    return sum(
        begun(fresh[each.name])
        for each in ready
        if each.name in fresh
        and each.name not in memory.met
        and (each.ready_at_seconds or 0.0) >= since
    )


def _warm(replicas: Iterable[Told]) -> Iterator[tuple[str, Delta]]:
    warm = [each for each in replicas if each.is_warm]
    for pool in sorted({each.pool for each in warm}):
        delta = joined([each.delta for each in warm if each.pool == pool])
        if delta is not None:
            yield pool, delta
