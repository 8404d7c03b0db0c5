"""Request traces: ``arrival_s,input_tokens,output_tokens`` in .csv or .csv.gz, and their scaling.

A trace is scaled as a service grows: by more users of the same habits, or by fewer. A copy of all
requests comes with an offset of its own (up to a minute, round the end of the trace), so bursts of
one copy stay as they are and do not fall on those of another; of a part of a copy, each request is
kept by a hash of its number. Both leave the rate over minutes as it is. Compressing time instead
would make every swing steeper than any user made it, and repeating each request on the spot would
make bursts that nobody sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.autoscale import request_files
from bench.files import BadInput
from poolwise.sim.serving.requests import Requests

DAY_SECONDS = 86400.0
MOST_DAYS = 8
"""A week's trace, and a little. Longer ones are in milliseconds (a quarter of an hour looks like
ten days), or one row is; and every policy acts each few seconds of what is replayed whole."""
OFFSET_SECONDS = 60.0
GOLDEN = 0.6180339887498949
"""Multiples of it spread evenly modulo one, however many there are."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests with a name; the first comes at 0."""

    name: str
    requests: Requests
    complaint: str = ""
    """Of rows that were left out; empty when all were good."""

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        return float(self.requests.arrival_seconds[-1])


def load(path: Path, with_prefixes: bool = False) -> Trace:
    """Read one. Bad rows are left out and named in ``complaint``.

    Raises :class:`BadInput` for a file without the columns or without any good row, or one that
    spans more than :data:`MOST_DAYS`.
    """
    table = request_files.read(path, with_prefixes)
    arrivals, inputs, outputs, cached = table.numbers.T
    days = float(np.ptp(arrivals)) / DAY_SECONDS
    if days > MOST_DAYS:
        raise BadInput(
            f"{path}: arrival_s spans {days:.1f} days, must be {MOST_DAYS} at most (of seconds)"
        )
    prompts = inputs.astype(np.int64)
    reused = np.minimum(cached.astype(np.int64), prompts - 1)
    requests = Requests.of(arrivals - arrivals.min(), prompts, outputs.astype(np.int64), reused)
    return Trace(path.name.removesuffix(".gz").removesuffix(".csv"), requests, table.complaint)


def scaled(trace: Trace, factor: float, seed: int = 0) -> Trace:
    """So many times the users. The same seed keeps the same requests.

    Raises :class:`BadInput` where none is kept.
    """
    if factor == 1.0 or not factor > 0.0:
        return trace
    whole, part = int(factor), factor - int(factor)
    own, span = trace.requests, trace.seconds
    arrivals, picked = [], []
    for copy in range(whole + bool(part)):
        offset = OFFSET_SECONDS * (copy * GOLDEN % 1.0)
        kept = np.arange(len(own)) if copy < whole else np.flatnonzero(_hashed(own, seed) < part)
        shifted = own.arrival_seconds[kept] + offset
        arrivals.append(np.where(shifted > span, shifted - span, shifted))
        picked.append(kept)
    kept = np.concatenate(picked)
    if not len(kept):
        raise BadInput(
            f"{trace.name}: none of its {len(own)} requests is left for a fleet of this size"
        )
    return Trace(trace.name, part_of(own, np.concatenate(arrivals), kept), trace.complaint)


def _hashed(requests: Requests, seed: int) -> NDArray[np.float64]:
    """From 0 to 1, by a request's number: a larger share keeps all that a smaller one kept."""
    return np.random.default_rng(seed).random(len(requests))


def window(trace: Trace, begin_seconds: float, seconds: float) -> Trace:
    """A part of it, which begins at 0."""
    arrivals = trace.requests.arrival_seconds
    kept = np.flatnonzero((arrivals >= begin_seconds) & (arrivals < begin_seconds + seconds))
    if not len(kept):
        raise BadInput(f"{trace.name}: no request in {seconds:g} s from {begin_seconds:g} s")
    part = part_of(trace.requests, arrivals[kept] - begin_seconds, kept)
    return Trace(trace.name, part, trace.complaint)


def part_of(own: Requests, arrivals: NDArray[np.float64], kept: NDArray[np.integer]) -> Requests:
    """Those at these places, each with an arrival of its own."""
    return Requests.of(
        arrivals, own.input_tokens[kept], own.output_tokens[kept], own.cached_tokens[kept]
    )
