"""Throughput of a finite set of requests that are all there from the start.

TensorRT-LLM's performance overview states how many there were for each pair of lengths
(docs/source/performance/perf-overview.md, "Preparing a Dataset"). Lengths do not vary, so requests
run in waves: as many as there are slots, and the last wave with what is left, which fills fewer.
"""

from __future__ import annotations

from bench.tables import Row, number
from poolwise.model.serving.capacity import capacity
from poolwise.model.serving.load import Replica, state

REQUESTS = {
    (128, 128): 30000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 1500,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20000, 2000): 1000,
}
"""By tokens of prompt and of answer."""


def requests_of(row: Row) -> float | None:
    """Of the whole run; None where no source tells, and a steady state is assumed."""
    lengths = number(row, "isl"), number(row, "osl")
    return next((float(count) for pair, count in REQUESTS.items() if pair == lengths), None)


def requests_per_second(served: Replica, requests: float | None) -> float:
    """Of one replica at saturation; 0 where nothing fits."""
    steady = capacity(served, ())
    if requests is None or not steady.requests_per_second:
        return steady.requests_per_second
    waves, left = divmod(requests, steady.load)
    seconds = waves * steady.load / steady.requests_per_second
    if left >= 1.0:
        seconds += left / state(served, left).requests_per_second
    return requests / seconds
