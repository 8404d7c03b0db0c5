"""Where replicas write what becomes of requests: in lists, whose scalars cost less than arrays."""

from __future__ import annotations

import math

import numpy as np

from poolwise.sim.serving.requests import Answers, Requests


class Log:
    """Requests by their number, and moments as they come."""

    __slots__ = ("arrivals", "cached", "finished", "first_tokens", "inputs", "outputs",
                 "preemptions")  # fmt: skip

    def __init__(self, requests: Requests) -> None:
        count = len(requests)
        self.arrivals: list[float] = requests.arrival_seconds.tolist()
        self.inputs: list[int] = requests.input_tokens.tolist()
        self.outputs: list[int] = requests.output_tokens.tolist()
        self.cached: list[int] = requests.cached_tokens.tolist()
        self.first_tokens = [math.nan] * count
        self.finished = [math.nan] * count
        self.preemptions = [0] * count

    def answers(self) -> Answers:
        """As arrays."""
        return Answers(
            np.array(self.first_tokens, np.float64),
            np.array(self.finished, np.float64),
            np.array(self.preemptions, np.int64),
        )
