"""From a look at the replicas to what came since the last one, and how far it is believed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from poolwise.plan.scaling.doubt import doubt, most_requests
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.preempted import waiting_again
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.signals.plausible import implausible
from poolwise.plan.signals.sample import Sample
from poolwise.plan.signals.state import State
from poolwise.plan.signals.window import Delta, WentBack, between, joined

WARM_UP_SECONDS = 30.0
"""After a replica is ready: latencies tell of compilation and empty caches, counts count."""
NEW_SECONDS = 60.0
"""Before the last look, when a replica may have become ready without having been read by then."""
STALE_SECONDS = 90.0
"""Age of a sample from which it tells nothing of now: six scrapes of the usual 15 s."""
LEAST_SECONDS = 1e-9
SHOWN = 3
"""Reasons that one sentence repeats."""


@dataclass(frozen=True, slots=True)
class Told:
    """By one replica since the last look."""

    pool: str
    delta: Delta
    arrivals: float
    sample: Sample
    served_seconds: float
    """Since it is ready, as far as that is known."""
    is_draining: bool
    broken_off: float = 0.0
    """Requests that left without having ended, as far as the gauges of both looks tell."""

    @property
    def arrivals_per_second(self) -> float:
        """Since the last look."""
        return self.arrivals / max(self.delta.seconds, LEAST_SECONDS)

    def kept_tokens(self, context_tokens: float) -> float:
        """Read and written since the last look, less those of requests that ended."""
        delta = self.delta
        ended = delta.prompt_lengths_tokens, delta.answer_lengths_tokens
        known = (
            delta.begun_prompt_tokens,
            delta.generated_tokens,
            *(each.total if each else None for each in ended),
        )
        if None in known:
            return (self.arrivals - (delta.finished_requests or 0.0)) * context_tokens
        read, written, prompts, answers = (each or 0.0 for each in known)
        return read + written - prompts - answers

    @property
    def in_flight(self) -> float:
        """Requests at the look, those that wait included."""
        return _in_flight(self.sample)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was in flight at the look."""
        return not self.in_flight

    @property
    def is_warm(self) -> bool:
        """Whether its latencies tell of usual work."""
        return self.served_seconds >= WARM_UP_SECONDS


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
        staying = (told for told in self.by_replica.values() if not told.is_draining)
        return math.fsum(told.kept_tokens(context_tokens) for told in staying)

    @property
    def broken_off(self) -> float:
        """Of these, requests that left without having ended: over many looks the noise of gauges
        cancels, since each one is the end of one difference and the beginning of the next."""
        return math.fsum(told.broken_off for told in self.by_replica.values())

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
    before = memory.waiting_again
    again = {
        name: waiting_again(before.get(name, 0.0), known[name], fresh[name], each)
        for name, each in deltas.items()
    }
    arrived = {
        name: _arrived(known[name], fresh[name], each) - (again[name] - before.get(name, 0.0))
        for name, each in deltas.items()
    }
    arrivals = new + sum(arrived.values())
    told = [fresh[each.name] for each in ready if each.name in fresh]
    state, reason = _judged(ready, memory, faults, deltas, told)
    silent = len(ready) / max(len(told), 1)
    by_replica = {
        each.name: Told(
            each.pool,
            deltas[each.name],
            arrived[each.name],
            fresh[each.name],
            _served_seconds(each, seen.now_seconds),
            each.phase is Phase.DRAINING,
            _broken_off(known[each.name], fresh[each.name], deltas[each.name], arrived[each.name]),
        )
        for each in read.serving
        if each.name in deltas
    }
    return Intake(
        state=state,
        reason=reason,
        seconds=seconds,
        arrivals=max(arrivals, 0.0),
        waiting=silent * sum(sample.waiting or 0.0 for sample in told),
        ready=len(ready),
        running=_running(ready, fresh),
        by_pool=dict(_warm(by_replica.values())),
        by_replica=by_replica,
        samples=fresh if seconds or not memory.samples else memory.samples,
        met=_met(memory, seen, fresh),
        waiting_again=again if seconds else before,
    )


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
        seconds, arrivals = seen.now_seconds - replica.requested_at_seconds, _begun(sample)
    elif isinstance(delta, Delta):
        seconds, arrivals = delta.seconds, _arrived(known, sample, delta)
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
    told: list[Sample],
) -> tuple[State, str]:
    """Idle may shrink, unknown holds, broken holds and says so."""
    if faults:
        shown = "; ".join(faults[name] for name in sorted(faults)[:SHOWN])
        more = len(faults) - SHOWN
        return State.BROKEN, f"{shown}; and {more} more" if more > 0 else shown
    if len(told) < len(ready):
        return State.UNKNOWN, f"{len(ready) - len(told)} of {len(ready)} replicas not read yet"
    if ready and not memory.samples:
        return State.UNKNOWN, "first look"
    is_flat = bool(deltas) and all(each.is_flat for each in deltas.values())
    if is_flat and len(deltas) >= len(ready) and not any(map(_in_flight, told)):
        return State.IDLE, "every replica was read, and no counter moved"
    return State.LIVE, f"read from {len(told)} replicas"


def _in_flight(sample: Sample) -> float:
    return (sample.running or 0.0) + (sample.waiting or 0.0)


def _running(ready: list[ReplicaSeen], fresh: Mapping[str, Sample]) -> dict[str, float]:
    told: dict[str, list[float]] = {}
    for each in ready:
        if each.name in fresh:
            told.setdefault(each.pool, []).append(fresh[each.name].running or 0.0)
    return {pool: sum(counts) / len(counts) for pool, counts in told.items()}


def _arrived(known: Sample, sample: Sample, delta: Delta) -> float:
    """First tokens are counted, exactly; who waits for one is seen in the gauges."""
    return _begun(sample) - (0.0 if delta.is_restart else _begun(known))


def _broken_off(known: Sample, sample: Sample, delta: Delta, arrivals: float) -> float:
    """Who came and has neither ended nor is there."""
    if delta.is_restart:
        return 0.0
    more = _in_flight(sample) - _in_flight(known)
    return arrivals - (delta.finished_requests or 0.0) - more


def _begun_in_new(ready: list[ReplicaSeen], memory: Memory, fresh: Mapping[str, Sample]) -> float:
    """Of a replica that became ready since the last look, all that it counted is new.

    Of one that was not read till now for another reason, nothing can be told, nor of one that was
    ready before: it counts since it started, long before it lost its readiness for a moment.
    """
    since = _newest(memory.samples.values()) - NEW_SECONDS
    return sum(
        _begun(fresh[each.name])
        for each in ready
        if each.name in fresh
        and each.name not in memory.met
        and (each.ready_at_seconds or 0.0) >= since
    )


def _begun(sample: Sample) -> float:
    if sample.ttft_seconds is not None:
        return sample.ttft_seconds.count + (sample.waiting or 0.0)
    return (sample.finished_requests or 0.0) + _in_flight(sample)


def _warm(replicas: Iterable[Told]) -> Iterator[tuple[str, Delta]]:
    warm = [each for each in replicas if each.is_warm]
    for pool in sorted({each.pool for each in warm}):
        delta = joined([each.delta for each in warm if each.pool == pool])
        if delta is not None:
            yield pool, delta


def _served_seconds(replica: ReplicaSeen, now_seconds: float) -> float:
    since = replica.ready_at_seconds
    return math.inf if since is None else now_seconds - since
