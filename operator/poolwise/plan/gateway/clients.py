"""How the targets of a service are kept as clients of its gateway see it.

For people alone: nothing is decided by it, since speeds are learned replica by replica, and a
gateway tells of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from poolwise.model.work import Metric, Target
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.live.keeping import Record
from poolwise.plan.live.telling import figures_told, signal_told
from poolwise.plan.reading import Told, number, objects
from poolwise.plan.signals.percentile import percentile_of
from poolwise.plan.wording import duration, plural, sentence

QUEUE = "Queue"
"""What the wait in the gateway's queue is called beside latencies."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What the endpoint pickers of one InferencePool measured lately; nothing, as it is made."""

    record: Record = field(default_factory=Record)
    problem: str = ""
    """Why what one of them told cannot be used, with its name."""

    def after(self, looks: Iterable[PickerTold], pool: str, now_seconds: float) -> Clients:
        """With one look more.

        One that tells of another InferencePool is passed over: latencies bear no pool's name.
        """
        own = [each for each in looks if each.pools <= {pool}]
        samples = {each.replica: each.measured for each in own if each.measured is not None}
        problems = (f"{each.replica}: {each.problem}" for each in own if each.problem)
        return Clients(self.record.after(samples, now_seconds), next(problems, ""))

    def told(self, targets: Sequence[Target], now_seconds: float) -> dict[str, Any]:
        """For ``status.scaling.gateway``: each target that is measured, the wait in the queue."""
        signals = self.record.signals(targets, now_seconds)
        found = [signal_told(each) for each in signals if each.samples]
        found += self._queue(targets, now_seconds)
        told = {"signals": found, "problem": sentence(self.problem)}
        return {name: value for name, value in told.items() if value}

    def _queue(self, targets: Sequence[Target], now_seconds: float) -> list[dict[str, Any]]:
        """At the strictest percentile: of first tokens, which it delays, else of any."""
        first = [each.percentile for each in targets if each.metric is Metric.TTFT]
        percentile = max(first or [each.percentile for each in targets], default=None)
        if percentile is None:
            return []
        seen = self.record.observed("queue_seconds", percentile, now_seconds)
        found = percentile_of(seen, percentile) if seen else None
        if found is None:
            return []
        low, high = (found.lower, found.upper) if found.is_sufficient else (None, None)
        told = {"lowSeconds": low, "highSeconds": high, "samples": found.samples}
        return [{"metric": QUEUE, "percentile": percentile, **figures_told(told)}]


def words(told: Told) -> str:
    """``TTFT p99 1 s to 1.25 s (target 2 s, 1,840 samples)`` of each signal, and how many requests
    wait now, from ``status.scaling.gateway``; empty where none of it is told."""
    phrases = [_signal_words(each) for each in objects(told, "signals")]
    held = round(number(told, "heldRequests") or 0)
    phrases += [f"{plural(held, 'request')} held"] if held else []
    phrases += [sentence(str(told["problem"]))] if told.get("problem") else []
    return "; ".join(phrases)


def _signal_words(signal: Told) -> str:
    low, high = number(signal, "lowSeconds"), number(signal, "highSeconds")
    target, samples = number(signal, "targetSeconds"), number(signal, "samples")
    name = f"{signal.get('metric')} p{number(signal, 'percentile') or 0:g}"
    of = [f"target {duration(target)}"] if target is not None else []
    of += [plural(round(samples), "sample")] if samples is not None else []
    told = f"{name} {_between(low, high)}"
    return f"{told} ({', '.join(of)})" if of else told


def _between(low: float | None, high: float | None) -> str:
    if low is None:
        return "not known, too few samples"
    if high is None:
        return f"above {duration(low)}"
    return f"{duration(low)} to {duration(high)}" if low else f"up to {duration(high)}"
