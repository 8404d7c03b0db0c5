"""Requests that lost their cache to others and wait for a slot again.

Engines count them with those that wait for their first token (vLLM and SGLang put them back to the
head of the same queue), so that a full cache looks like a rush of arrivals, and its end as if
nothing came. How often it happened is counted; that they run again is told by nothing but the
gauge of those that run, which then grows by more than first tokens came.
"""

from __future__ import annotations

from poolwise.plan.signals.sample import Sample
from poolwise.plan.signals.window import Delta


def waiting_again(before: float, known: Sample, sample: Sample, delta: Delta) -> float:
    """Of the requests that wait at a replica, those that ran before.

    Whoever left the batch without an answer was preempted, and whoever joined it without a first
    token runs again: ``preempted - resumed = begun - ended - (running - running before)``.

    :param before: the same at the last look.
    """
    preempted = delta.preemptions or 0.0
    if delta.is_restart or not before + preempted:
        return 0.0
    now = before + _left_the_batch(known, sample, delta, preempted)
    return min(max(now, 0.0), before + preempted, sample.waiting or 0.0)


def _left_the_batch(known: Sample, sample: Sample, delta: Delta, preempted: float) -> float:
    """Less those that joined it again; all that were preempted where an engine does not tell."""
    begun, ended = delta.ttft_seconds, delta.finished_requests
    if begun is None or ended is None or known.running is None or sample.running is None:
        return preempted
    return begun.count - ended - (sample.running - known.running)
