"""Streams of requests that come by chance, with the lengths of a recorded trace."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from bench.autoscale import sizing
from bench.autoscale.engine import engine
from bench.autoscale.grid import trace_of
from bench.autoscale.scene import Scene
from bench.autoscale.traces import Trace
from poolwise.sim.serving.requests import Floats, Requests

TRACES = ("azure2023_conv", "servegen_mlarge_tail_day2", "servegen_r1_24h")
"""That give lengths."""
LOAD = 0.7
"""Of what a replica serves inside the targets."""


@cache
def measured(data: Path, name: str) -> Scene:
    """The trace before an engine that was measured with its lengths."""
    trace, targets = trace_of(data, name), sizing.Targets()
    on = engine()
    return Scene(trace, on, targets, sizing.measured(on, trace.requests, targets))


def per_second(of: Scene) -> float:
    """Requests that one replica is loaded with."""
    return LOAD * of.work.requests_per_second


def arriving(
    of: Scene, arrival_seconds: Floats, draw: np.random.Generator, name: str, replicas: int
) -> Scene:
    """The same engine, with requests at these moments and lengths that the trace has.

    :param replicas: that are there at the beginning.
    """
    sample = of.trace.requests
    picked = draw.integers(0, len(sample), len(arrival_seconds))
    drawn = Requests(
        np.sort(arrival_seconds), sample.input_tokens[picked], sample.output_tokens[picked],
        sample.cached_tokens[picked],
    )  # fmt: skip
    return replace(of, trace=Trace(name, drawn), initial_replicas=replicas)
