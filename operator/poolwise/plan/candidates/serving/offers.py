"""Replica shapes that a service may take in one pool, and which of them is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from poolwise.plan.candidates.exclusions import Exclusion
from poolwise.plan.candidates.serving.layouts import ReplicaShape
from poolwise.plan.closeness import Wish
from poolwise.plan.ledger.capacity import Gang

ALIKE = 1.02
"""Offers within 2 % of the best objective count as equally good."""
LEAST_SERVED = 0.5
"""Of what the best of equally good offers serves for the same price: less is no equal offer, since
loads grow beyond what was declared."""


@dataclass(frozen=True, slots=True)
class ServingOffer:
    """One replica shape on one pool, as often as the traffic needs it."""

    shape: ReplicaShape
    replicas: int
    weighed: int
    """Replicas by which it is compared with others: at least those."""
    load_requests_per_second: float
    """Of each replica at the peak; at most what it can serve, where somebody set too few."""
    price_share: float
    """Nodes' worth of what one replica holds."""
    cost_per_hour: float | None
    """Of all replicas."""
    gang: Gang
    """All replicas' pods."""
    wish: Wish
    broken: Exclusion | None
    """The limit of the user's that it breaks."""
    has_room: bool
    """For all replicas now, inside the limits."""
    too_few: str
    """Clause: why it will have fewer replicas than the targets need; empty where it will not."""

    @property
    def held(self) -> float:
        """Nodes' worth of what all replicas hold that it is weighed by."""
        return self.price_share * self.weighed

    @property
    def served_per_price(self) -> float:
        """Requests per second of one replica for each node's worth that it holds."""
        return self.shape.capacity_requests_per_second / self.price_share


def preferred(
    offers: Sequence[ServingOffer], objective: Callable[[ServingOffer], float]
) -> ServingOffer | None:
    """With room inside the limits if any has; of those alike, the smallest replica, and of as
    small ones the one that serves most.

    The loss of one replica of many is felt less than that of one of few. But a replica whose
    memory is nearly all weights may cost as much for what is declared and serve a quarter: then
    whatever comes beyond it is dear.
    """
    placeable = [offer for offer in offers if offer.has_room] or offers
    placeable = [offer for offer in placeable if not offer.too_few] or placeable
    valued = [(objective(offer), offer) for offer in placeable]
    most = min([value for value, _ in valued], default=0.0) * ALIKE
    alike = [
        (offer.price_share, value, -offer.shape.capacity_requests_per_second, offer)
        for value, offer in valued
        if value <= most
    ]
    best = max((each.served_per_price for *_, each in alike), default=0.0)
    growing = [each for each in alike if each[3].served_per_price >= LEAST_SERVED * best]
    return min(growing, key=itemgetter(0, 1, 2))[3] if growing else None
