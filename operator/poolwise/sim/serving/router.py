"""Which replica takes a request: a router that counts, or the plain Service of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from poolwise.sim.serving.replica import Replica


class Router(Protocol):
    """Chooses among the replicas that are ready and do not drain."""

    def load(self, replica: Replica) -> int:
        """What it counts of one; told again whenever it may have changed."""
        ...

    def choose(self, number: int, loads: Sequence[int]) -> int:
        """The place of the replica that takes request ``number``; there is one at least."""
        ...


class LeastOutstanding:
    """The one with the fewest requests in it, as inference gateways route; the first of equals."""

    def load(self, replica: Replica) -> int:
        """Requests that it has not answered."""
        return replica.outstanding

    def choose(self, number: int, loads: Sequence[int]) -> int:
        """Whoever has least."""
        del number
        return loads.index(min(loads))


class PlainService:
    """Any of them, by chance: what kube-proxy does with a new connection."""

    def __init__(self, requests: int, seed: int) -> None:
        self._draws: list[float] = np.random.default_rng(seed).random(requests).tolist()

    def load(self, replica: Replica) -> int:
        """Not looked at."""
        del replica
        return 0

    def choose(self, number: int, loads: Sequence[int]) -> int:
        """Each request has a connection of its own."""
        return int(self._draws[number] * len(loads))
