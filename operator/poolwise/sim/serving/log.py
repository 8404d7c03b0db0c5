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

    def add(self, arrival_seconds: float, input_tokens: int, output_tokens: int) -> int:
        """One request more, none of whose prompt is cached; its number.

        For engines whose requests are not known beforehand. Arrivals ascend.
        """
        self.arrivals.append(arrival_seconds)
        self.inputs.append(input_tokens)
        self.outputs.append(output_tokens)
        self.cached.append(0)
        self.first_tokens.append(math.nan)
        self.finished.append(math.nan)
        self.preemptions.append(0)
        return len(self.arrivals) - 1

    def answers(self) -> Answers:
        """As arrays."""
        return Answers(
            np.array(self.first_tokens, np.float64),
            np.array(self.finished, np.float64),
            np.array(self.preemptions, np.int64),
        )
