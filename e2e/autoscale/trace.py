"""What is replayed: a load in steps that a few minutes can hold, or a file's, made shorter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench.autoscale.sizing import Work
from bench.autoscale.traces import Trace, scaled, window
from e2e.images.load.plan import Z95, Lengths, Planned
from poolwise.sim.serving.requests import Floats, Requests

BIN_SECONDS = 15.0
"""Over which the load of a file is looked at for its peak."""
SCALINGS = 3
SAMPLE = 3000
LONGEST_TOKENS = 4000
"""Prompt and answer each: both fit into the context of the services that are run."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a trace: over ``seconds`` the load goes in a straight line to ``replicas``."""

    seconds: float
    replicas: float
    """That the load at its end takes up, as far as the targets allow."""


def load_of(stretches: Sequence[Stretch]) -> Floats:
    """Replicas that are taken up, second by second."""
    ends = np.cumsum([0.0, *(each.seconds for each in stretches)])
    loads = [stretches[0].replicas, *(each.replicas for each in stretches)]
    found: Floats = np.interp(np.arange(0.0, ends[-1]), ends, loads)
    return found


class Source(Protocol):
    """Where a trace comes from, before it is known how much an engine bears."""

    @property
    def sample(self) -> Requests:
        """Requests of its lengths, by which that is measured."""

    def trace(self, work: Work) -> Trace:
        """For engines of which one request takes so much."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A Poisson process whose rate follows the stretches; lengths are log-normal."""

    stretches: tuple[Stretch, ...]
    inputs: Lengths
    outputs: Lengths
    seed: int = 0

    @property
    def sample(self) -> Requests:
        """As many as fit most."""
        return self._requests(np.arange(SAMPLE, dtype=np.float64))

    def trace(self, work: Work) -> Trace:
        """Begins at 0, whenever its first request comes."""
        source = np.random.default_rng(self.seed)
        counts = source.poisson(load_of(self.stretches) * work.requests_per_second)
        seconds = np.repeat(np.arange(len(counts)), counts)
        return Trace("steps", self._requests(np.sort(seconds + source.random(len(seconds)))))

    def _requests(self, arrivals: Floats) -> Requests:
        source = np.random.default_rng(self.seed + 1)
        return Requests.of(
            arrivals,
            _drawn(self.inputs, len(arrivals), source),
            _drawn(self.outputs, len(arrivals), source),
        )


def _drawn(lengths: Lengths, count: int, source: np.random.Generator) -> NDArray[np.int64]:
    sigma = math.log(lengths.p95 / lengths.median) / Z95
    drawn = lengths.median * np.exp(sigma * source.standard_normal(count))
    return np.clip(np.round(drawn), 1, LONGEST_TOKENS).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Compressed:
    """A part of a file's trace in less time, so that every swing is so many times as steep.

    With so few, or so many, users that its busiest quarter of a minute needs ``peak_replicas``.
    """

    of: Trace
    factor: float
    begin_seconds: float
    seconds: float
    """Of the file."""
    peak_replicas: float

    @property
    def sample(self) -> Requests:
        """All of it; what no engine of these runs takes is left out."""
        part = window(self.of, self.begin_seconds, self.seconds).requests
        fits = np.maximum(part.input_tokens, part.output_tokens) <= LONGEST_TOKENS
        arrivals = part.arrival_seconds[fits] / self.factor
        return Requests.of(arrivals, part.input_tokens[fits], part.output_tokens[fits])

    def trace(self, work: Work) -> Trace:
        """Found in a few rounds: copies do not all peak at the same moment."""
        whole = Trace(f"{self.of.name}, {self.factor:g} times as fast", self.sample)
        factor, found = 1.0, whole
        for _ in range(SCALINGS):
            peak = float(work.needed_replicas(found.requests, BIN_SECONDS).max())
            factor *= self.peak_replicas / peak
            found = scaled(whole, factor)
        return found


def planned(requests: Requests) -> Iterator[Planned]:
    """As the generator sends them."""
    columns = (requests.arrival_seconds, requests.input_tokens, requests.output_tokens)
    for arrival, prompt, answer in zip(*(each.tolist() for each in columns), strict=True):
        yield Planned(arrival, prompt, answer)


def as_csv(requests: Iterable[Planned]) -> str:
    """As ``replay`` reads them."""
    rows = (f"{each.at_seconds},{each.input_tokens},{each.output_tokens}" for each in requests)
    return "\n".join(("arrival_s,input_tokens,output_tokens", *rows, ""))
