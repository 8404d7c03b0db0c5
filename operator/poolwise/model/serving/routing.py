"""How a router spreads requests: how seldom it sends one to a replica that reads a prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving.queueing import normal_cdf

AVOIDANCE = 0.4
"""Of ln(replicas), fitted: fleets of 2 to 20 that read prompts for 20 to 65 % of the time, with
lengths of three traces, behind a router that takes the fewest outstanding requests
(``python -m bench.autoscale.validation``). By what requests wait on average the best of each trace
are 0.36 (Mooncake, where few prompts are very long), 0.47 and 0.7 (answers of 28 tokens, so that
most of what is outstanding is a prompt)."""


@dataclass(frozen=True, slots=True)
class Routed:
    """How requests come to one replica of several; unless told otherwise, by chance, as those of a
    plain Service do."""

    peers: float = 1.0
    """Replicas that a router chooses among by what they have in flight, itself included."""
    apart_share: float = 0.0
    """Of requests, those that follow another one on this replica as if a router had turned to
    others first (:mod:`poolwise.model.serving.mean_gap`); the rest come by chance."""


BY_CHANCE = Routed()


def met_share(busy: float, answering: float, peers: float) -> float:
    """Of the requests that would find a prompt being read if chance spread them: those that do.

    A router that takes the fewest outstanding requests finds a replica that has none, where there
    is one: the ``peers - 1`` others all have some where at least as many requests are outstanding
    there (Poisson, by the gamma law that tells its tail, and that by Wilson and Hilferty, PNAS
    17(12), 1931). Else it counts sequences that run like prompts that are read, so that a prompt
    holds only those off that would make its replica the fuller one; that share falls with the
    number of peers as ``busy**(AVOIDANCE * ln(peers))``.

    :param busy: share of the time that a replica reads prompts; from 1 on nobody is held off.
    :param answering: requests on one replica, on average, that have their first token.
    :param peers: replicas that the router chooses among by their counts; 1: by chance.
    """
    others = peers - 1.0
    if others <= 0.0 or not 0.0 < busy < 1.0:
        return 1.0
    outstanding = answering + busy / (1.0 - busy)  # the latter as of M/M/1: reading and waiting
    root = math.cbrt(outstanding)
    none_is_idle = normal_cdf(3.0 * math.sqrt(others) * (root - 1.0 + 1.0 / (9.0 * others)))
    return none_is_idle * math.pow(busy, AVOIDANCE * math.log(peers))
