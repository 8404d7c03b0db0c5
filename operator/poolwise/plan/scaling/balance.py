"""Whether a router looks at what replicas have in flight, told by how alike their numbers are.

Where chance spreads requests (a plain Service), the variance of the numbers over replicas is as
large as their mean (Poisson). A router that takes the fewest outstanding requests leaves next to
none: numbers are whole, so ``f * (1 - f)`` for a mean with the fraction ``f``. Where between these
the looks lie tells how many replicas a request is as good as chosen among: prompts wait the less
for each other the more they are (:mod:`poolwise.model.serving.routing`). It tells as well whether
requests are kept apart that come to one replica one after the other, where gaps between tokens are
what is late (:mod:`poolwise.model.serving.mean_gap`).

Before looks tell, prompts are taken to come by chance and gaps to be those behind a router: a fleet
whose edge gaps make is small and seldom has two requests on a replica, so that it learns late, and
with the law of chance it would begin with twice as many replicas as it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from poolwise.model.serving.routing import Routed
from poolwise.plan.scaling.cadence import steps

HALF_LIFE_SECONDS = 1800.0
PRIOR = 10.0
"""Of degrees of freedom, of replicas with a request each: so many are taken to have been seen. One
look at eleven replicas with a request or more each is as much."""
OF_ROUTERS = 0.1
"""Of what chance makes, that a router leaves, since requests do not end in the order in which they
came: 0.02 to 0.15 in simulated queues of 2 to 20 servers with one request each or more."""
APART_BELOW = 0.4
"""Of what chance makes: where it is less, gaps are those behind a router. Numbers of a fleet that
grows, and those about one request, lie between 0.1 and this behind a router too. With 0.1 Azure's
code behind one takes 3 % more replicas at 12 peaks, and is in time no more often."""
APART_STEP = 0.1
"""Of the share that is kept apart."""
MOST = 4.0
"""Times what chance makes that one look may tell: queues of thousands are no matter of routers."""
STEP = 0.2
"""Of ln(peers): capabilities are remembered by it."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Fading sums over looks, each by the degrees of freedom that it has.

    Where replicas have less than one request each, numbers are alike however they came about.
    """

    unlike: float = 0.0
    """Variance beyond what whole numbers cannot do without, over the mean from 1 on."""
    by_chance: float = 0.0
    """The same as chance would make it."""
    log_replicas: float = 0.0
    """ln(replicas), weighted like that."""

    def after(self, pools: Iterable[Sequence[float]], seconds: float) -> Balance:
        """A look later.

        :param pools: requests that each replica has in flight, pool by pool, of those that have
            served for so long that they would be as full as others.
        """
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        unlike, by_chance, log_replicas = (kept * each for each in astuple(self))
        for counts in pools:
            freedom = len(counts) - 1
            if freedom < 1:
                continue
            mean = math.fsum(counts) / len(counts)
            least = mean % 1.0 * (1.0 - mean % 1.0)
            variance = math.fsum((each - mean) ** 2 for each in counts) / freedom
            weight = freedom * steps(seconds) / max(mean, 1.0)
            chance = weight * (mean - least)
            unlike += min(max(weight * (variance - least), 0.0), MOST * chance)
            by_chance += chance
            log_replicas += chance * math.log(len(counts))
        return Balance(unlike, by_chance, log_replicas)

    @property
    def routed(self) -> Routed:
        """How requests come to a replica, rounded: capabilities are remembered by it."""
        alike = (1.0 - self._unlike(1.0)) / (1.0 - OF_ROUTERS)
        apart = (1.0 - self._unlike(OF_ROUTERS)) / (1.0 - APART_BELOW)
        told = min(max(alike, 0.0), 1.0) * self.log_replicas / max(self.by_chance, 1e-12)
        return Routed(
            math.exp(round(told / STEP) * STEP),
            round(min(max(apart, 0.0), 1.0) / APART_STEP) * APART_STEP,
        )

    def _unlike(self, before: float) -> float:
        """As a share of what chance makes.

        :param before: such a share, believed before anything was seen.
        """
        return (self.unlike + before * PRIOR) / (self.by_chance + PRIOR)
