"""What one replica told between two looks at it: its counters' differences, and what follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.plan.scaling.preempted import waiting_again
from poolwise.plan.scaling.seen import Phase, ReplicaSeen
from poolwise.plan.signals.sample import Sample
from poolwise.plan.signals.window import Delta

WARM_UP_SECONDS = 30.0
"""After a replica is ready: latencies tell of compilation and empty caches, counts count."""
LEAST_SECONDS = 1e-9


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
    more_in_flight: float
    """Requests, those that wait included, than at the last look."""
    waiting_again: float
    """Of the requests that wait, those that were preempted (:mod:`.preempted`)."""

    @property
    def arrivals_per_second(self) -> float:
        """Since the last look."""
        return self.arrivals / max(self.delta.seconds, LEAST_SECONDS)

    @property
    def ended(self) -> float:
        """Requests; of an engine that does not tell, those that came and are no longer there."""
        told = self.delta.finished_requests
        return self.arrivals - self.more_in_flight if told is None else told

    @property
    def broken_off(self) -> float:
        """Requests that neither ended nor are there, as far as the gauges of both looks tell."""
        return self.arrivals - self.ended - self.more_in_flight

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
            return (self.arrivals - self.ended) * context_tokens
        read, written, prompts, answers = (each or 0.0 for each in known)
        return read + written - prompts - answers

    @property
    def in_flight(self) -> float:
        """Requests at the look, those that wait included."""
        return self.sample.in_flight

    @property
    def is_idle(self) -> bool:
        """Whether nothing was in flight at the look."""
        return not self.in_flight

    @property
    def is_warm(self) -> bool:
        """Whether its latencies tell of usual work."""
        return self.served_seconds >= WARM_UP_SECONDS


def told(
    replica: ReplicaSeen,
    known: Sample,
    sample: Sample,
    delta: Delta,
    waiting_again_before: float,
    now_seconds: float,
) -> Told:
    """From the last look at it, ``known``, and this one, with what lies between them."""
    again = waiting_again(waiting_again_before, known, sample, delta)
    since = replica.ready_at_seconds
    return Told(
        replica.pool,
        delta,
        arrived(known, sample, delta) - (again - waiting_again_before),
        sample,
        math.inf if since is None else now_seconds - since,
        replica.phase is Phase.DRAINING,
        sample.in_flight - (0.0 if delta.is_restart else known.in_flight),
        again,
    )


def arrived(known: Sample, sample: Sample, delta: Delta) -> float:
    """Requests whose first token came, or that wait now and did not before: whether they wait for
    it or were preempted."""
    return begun(sample) - (0.0 if delta.is_restart else begun(known))


def begun(sample: Sample) -> float:
    """Since the replica started: first tokens are counted, exactly; who waits is seen in gauges."""
    if sample.ttft_seconds is not None:
        return sample.ttft_seconds.count + (sample.waiting or 0.0)
    return (sample.finished_requests or 0.0) + sample.in_flight
