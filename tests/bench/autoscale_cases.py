"""A small scene for replays: two minutes' warm-up, half an hour, an engine of the tables."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from bench.autoscale.engine import Engine, engine
from bench.autoscale.policy import View
from bench.autoscale.scene import Scene
from bench.autoscale.sizing import Targets, Work
from bench.autoscale.traces import Trace
from poolwise.sim.serving.requests import Requests

TARGETS = Targets()
WORK = Work(2.5e-4, 1.1e-8, 9.9e-3, 0.061, 0.75)
"""As :func:`bench.autoscale.sizing.measured` finds it; nothing but its scale matters here."""


@functools.cache
def small_engine() -> Engine:
    """Llama-3.1-8B on one L4, eight at a time: slow, so that few requests make a load."""
    return engine("llama-3.1-8b", "L4", 1, max_num_seqs=8)


def stream(per_second: float, seconds: float, seed: int = 0, answer: int = 120) -> Requests:
    """Poisson; prompts of 50 to 600 tokens."""
    draw = np.random.default_rng(seed)
    count = int(per_second * seconds)
    return Requests.of(
        np.sort(draw.random(count)) * seconds,
        draw.integers(50, 600, count),
        draw.integers(10, 2 * answer, count),
    )


def step_scene(before: float = 0.5, after: float = 2.0) -> Scene:
    """A rate that steps up after ten minutes of twenty."""
    first, second = stream(before, 600.0), stream(after, 600.0, seed=1)
    both = Requests.of(
        np.concatenate((first.arrival_seconds, second.arrival_seconds + 600.0)),
        np.concatenate((first.input_tokens, second.input_tokens)),
        np.concatenate((first.output_tokens, second.output_tokens)),
    )
    trace = Trace("step", both)
    return Scene(trace, small_engine(), TARGETS, WORK, warm_up_seconds=120.0, most_replicas=12)


class Script:
    """Wants what it was told to from given moments on; keeps all that it was shown."""

    interval_seconds = 10.0

    def __init__(self, *moves: tuple[float, int]) -> None:
        self._moves = moves
        self.views: list[View] = []

    def desired(self, view: View) -> int:
        """The last move that is due."""
        self.views.append(view)
        return [wanted for moment, wanted in self._moves if moment <= view.now_seconds][-1]


def with_steady_trace(folder: Path) -> Path:
    """With the trace "steady" in it: ten minutes of a request each second, and ten of four."""
    arrivals = np.concatenate([np.arange(0.0, 600.0), 600.0 + 0.25 * np.arange(2400)])
    rows = (f"{at},300,300" for at in arrivals)
    text = "\n".join(["arrival_s,input_tokens,output_tokens", *rows])
    (folder / "steady.csv").write_text(text)
    return folder
