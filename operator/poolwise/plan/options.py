"""What a workload could do, in the terms of the joint planner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.assessment import gang
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.training_offers import AS_CHEAP
from poolwise.plan.capacity import Gang
from poolwise.plan.closeness import Wish
from poolwise.plan.decision import Candidate, CountOffer
from poolwise.plan.joint.problem import Option
from poolwise.plan.pool import Pool
from poolwise.plan.ranking import losses, rank
from poolwise.plan.requests.request import Goal, Request

MILLICORES = 1000
"""Of a core: what stands for accelerators where a pool has none."""


def options(
    request: Request, found: Iterable[Candidate], situation: Situation
) -> tuple[Option, ...]:
    """Every pool that could run it, free now or not, at every count of accelerators it allows.

    What an option minimises is how many times worse it is than the best one, as the ranking of
    candidates judges it: so a pool that is level with the best one loses nothing.
    """
    possible = [each for each in found if each.feasible or each.waits]
    ranking = rank(possible, request.goal)
    if ranking is None:
        return ()
    lost = losses(ranking)
    return tuple(
        option
        for each in possible
        for option in _Ways(request, each, situation).options(lost[each.pool])
    )


@dataclass(frozen=True, slots=True)
class _Ways:
    """One pool's."""

    request: Request
    candidate: Candidate
    situation: Situation

    def options(self, loss: float) -> Iterator[Option]:
        """At each count of accelerators, and in each domain that would do."""
        offers = self.candidate.offers
        if not offers:
            yield from self._near(self._option(self.candidate, loss), self.candidate.wish)
        least = _as_good(offers, self.request.goal)
        for offer in offers:
            value = offer.objective_value
            is_as_good = value is not None and value <= least
            found = self._option(
                replace(
                    self.candidate,
                    count=offer.count,
                    cost_per_hour=offer.cost_per_hour,
                    wish=offer.wish,
                ),
                loss if is_as_good else loss * self._times(offer),
            )
            yield from self._near(replace(found, seconds=offer.seconds), offer.wish)

    def _times(self, offer: CountOffer) -> float:
        """How many times the objective of the pool's own candidate."""
        if not offer.objective_value or not self.candidate.objective_value:
            return 1.0
        return offer.objective_value / self.candidate.objective_value

    def _option(self, found: Candidate, loss: float) -> Option:
        pool = self._pool
        pods = gang(self.request, found, pool)
        millicores = math.ceil(pods.cores * MILLICORES)
        return Option(
            pool=pool.name,
            pods=pods.pods,
            accelerators_per_pod=millicores if pool.is_cpu else pods.accelerators,
            seconds=None,
            cost_per_hour=found.cost_per_hour or 0.0,
            objective=Interval(loss, loss, loss),
            one_per_node=pods.one_per_node,
            is_blocked=self._is_blocked(pods, found.wish),
            is_on_cpu=pool.is_cpu,
        )

    def _is_blocked(self, pods: Gang, wish: Wish) -> bool:
        """Whether its pods find no room now for what they ask beside accelerators."""
        if not (pods.cores or pods.memory_bytes):
            return False
        return self.situation.nodes_for(pods, self._pool, wish) is None

    def _near(self, option: Option, wish: Wish) -> Iterator[Option]:
        """As close together as the workload insists on, once for each level that would do."""
        if not wish.must_share:
            yield option
            return
        for level in wish.levels:
            yield replace(option, level=level)

    @property
    def _pool(self) -> Pool:
        return self.situation.ledger.pools[self.candidate.pool]


def _as_good(offers: Iterable[CountOffer], goal: Goal) -> float:
    """Costs (or joules) that are as good as the least."""
    known = [each.objective_value for each in offers if each.objective_value is not None]
    return -math.inf if goal is Goal.TIME or not known else min(known) * (1 + AS_CHEAP)
