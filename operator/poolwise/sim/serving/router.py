"""Which replica takes a request: a router that counts, or the plain Service of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

import numpy as np

from poolwise.sim.serving.replica import Replica

_REQUESTS = attrgetter("outstanding")
_TOKENS = attrgetter("outstanding_tokens")


class Router(Protocol):
    """Chooses among the replicas that are ready and do not drain."""

    def choose(self, number: int, ready: Sequence[Replica]) -> Replica:
        """For one request; ``ready`` has one replica at least."""
        ...


class LeastOutstanding:
    """The one with the fewest requests in it, as inference gateways route.

    By ``tokens`` it is the one with the fewest tokens of prompts and answers to come; a router
    knows answers' lengths only on average, so this one is better informed than a real one.
    """

    def __init__(self, by_tokens: bool = False) -> None:
        self._outstanding = _TOKENS if by_tokens else _REQUESTS

    def choose(self, number: int, ready: Sequence[Replica]) -> Replica:
        """The first of those that are alike."""
        del number
        return min(ready, key=self._outstanding)


class PlainService:
    """Any of them, by chance: what kube-proxy does with a new connection."""

    def __init__(self, requests: int, seed: int) -> None:
        self._draws: list[float] = np.random.default_rng(seed).random(requests).tolist()

    def choose(self, number: int, ready: Sequence[Replica]) -> Replica:
        """Each request has a connection of its own."""
        return ready[int(self._draws[number] * len(ready))]


class RoundRobin:
    """One after the other, as IPVS and most proxies do by default."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, number: int, ready: Sequence[Replica]) -> Replica:
        """Whoever was ready before."""
        del number
        self._next += 1
        return ready[self._next % len(ready)]
