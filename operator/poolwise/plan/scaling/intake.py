"""From a look at the replicas to what came since the last one, and how far it is believed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.signals.sample import Sample
from poolwise.plan.signals.state import Load, State, load_of
from poolwise.plan.signals.window import Delta, WentBack, between, joined

WARM_UP_SECONDS = 30.0
"""After a replica is ready: latencies tell of compilation and empty caches, counts count."""
NEW_SECONDS = 60.0
"""Before the last look, when a replica may have become ready without having been read by then."""
STALE_SECONDS = 90.0
"""Age of a sample from which it tells nothing of now: six scrapes of the usual 15 s."""


@dataclass(frozen=True)
class Intake:
    """What came since the last look."""

    load: Load
    seconds: float
    """Since the last look; 0 at the first one."""
    arrivals: float
    """Requests that came to replicas that told."""
    in_flight: float
    """Running and waiting, over all replicas that told, draining ones included."""
    waiting: float
    warm: Delta | None
    """Without replicas that warm up."""
    by_pool: Mapping[str, Delta]
    """The same, pool by pool."""
    told: int
    """Ready replicas that told."""
    ready: int
    samples: Mapping[str, Sample]
    """Used now, for the next look."""

    @property
    def may_shrink(self) -> bool:
        """Nothing is missing and nothing is broken."""
        return self.load.state in (State.LIVE, State.IDLE)


def intake(memory: Memory, seen: Seen) -> Intake:
    """Compare this look with the remembered one."""
    serving = tuple(_serving(seen))
    known = {each.name: memory.samples.get(each.name) for each in serving}
    fresh = {
        each.name: seen.samples[each.name]
        for each in serving
        if each.name in seen.samples and each.name not in seen.broken
    }
    windows = {name: _window(known[name], sample) for name, sample in fresh.items()}
    ready = [each for each in serving if each.phase is Phase.READY]
    load = load_of(
        {each.name: windows.get(each.name, ()) for each in ready},
        _faults(ready, seen, fresh),
        tuple(name for name, sample in fresh.items() if _in_flight(sample) > 0.0),
    )
    warm = [each for each in serving if _is_warm(each, seen.now_seconds)]
    return Intake(
        load=load,
        seconds=max((d.seconds for ds in windows.values() for d in _good(ds)), default=0.0),
        arrivals=max(sum(_arrivals(each, known, fresh, memory) for each in serving), 0.0),
        in_flight=sum(map(_in_flight, fresh.values())),
        waiting=sum(sample.waiting or 0.0 for sample in fresh.values()),
        warm=_joined(warm, windows),
        by_pool={
            pool: delta
            for pool in {each.pool for each in warm}
            if (delta := _joined([w for w in warm if w.pool == pool], windows)) is not None
        },
        told=sum(each.name in fresh for each in ready),
        ready=len(ready),
        samples={**{k: v for k, v in known.items() if v is not None}, **fresh},
    )


def _serving(seen: Seen) -> Iterator[ReplicaSeen]:
    return (each for each in seen.replicas if each.phase is not Phase.STARTING)


def _window(known: Sample | None, sample: Sample) -> tuple[Delta | WentBack, ...]:
    """Of a replica never seen before, all that it counted is new: it started meanwhile."""
    if known is None:
        return ()
    found = between(known, sample)
    return () if found is None else (found,)


def _good(found: tuple[Delta | WentBack, ...]) -> Iterator[Delta]:
    return (each for each in found if isinstance(each, Delta))


def _faults(ready: list[ReplicaSeen], seen: Seen, fresh: Mapping[str, Sample]) -> dict[str, str]:
    """Ready replicas that did not tell, or told long ago."""
    faults = dict(seen.broken)
    for each in ready:
        if each.name in faults:
            continue
        sample = fresh.get(each.name)
        if sample is None:
            if each.name in seen.missing:
                faults[each.name] = seen.missing[each.name]
        elif seen.now_seconds - sample.at_seconds > STALE_SECONDS:
            age = seen.now_seconds - sample.at_seconds
            faults[each.name] = f"{each.name}: last answered {age:.0f} s ago"
    return {name: why for name, why in faults.items() if any(each.name == name for each in ready)}


def _in_flight(sample: Sample) -> float:
    return (sample.running or 0.0) + (sample.waiting or 0.0)


def _arrivals(
    replica: ReplicaSeen,
    known: Mapping[str, Sample | None],
    fresh: Mapping[str, Sample],
    memory: Memory,
) -> float:
    """First tokens are counted, exactly; who waits for one is seen in the gauges.

    Of a replica that became ready since the last look, all that it counted is new; of one that
    was not read till now for another reason, nothing can be told.
    """
    sample, earlier = fresh.get(replica.name), known.get(replica.name)
    if sample is None:
        return 0.0
    if earlier is None:
        is_new = bool(memory.bins) and (
            (replica.ready_at_seconds or 0.0) >= memory.bins[-1].at_seconds - NEW_SECONDS
        )
        return _begun(sample) if is_new else 0.0
    found = between(earlier, sample)
    if not isinstance(found, Delta):
        return 0.0
    return _begun(sample) - (0.0 if found.is_restart else _begun(earlier))


def _begun(sample: Sample) -> float:
    if sample.ttft_seconds is not None:
        return sample.ttft_seconds.count + (sample.waiting or 0.0)
    return (sample.finished_requests or 0.0) + _in_flight(sample)


def _is_warm(replica: ReplicaSeen, now_seconds: float) -> bool:
    since = replica.ready_at_seconds
    return since is None or now_seconds - since >= WARM_UP_SECONDS


def _joined(
    replicas: list[ReplicaSeen], windows: Mapping[str, tuple[Delta | WentBack, ...]]
) -> Delta | None:
    return joined([d for each in replicas for d in _good(windows.get(each.name, ()))])
