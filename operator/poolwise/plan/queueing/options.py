"""What a workload could do, in the terms of the joint planner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.assessment import gang
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.training.answers import gang_of
from poolwise.plan.closeness import Wish
from poolwise.plan.decision import Candidate, CountOffer
from poolwise.plan.joint.problem import Option
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.limits import as_cheap_as
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Goal, Request, TrainingRequest
from poolwise.plan.selection.ranking import NEXT_TO_NOTHING, losses, rank

SLOWER_LOSS = NEXT_TO_NOTHING / 100
"""Of a count that costs the same and takes longer: less than what is told between pools."""
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
        found, request, pool = self.candidate, self.request, self._pool
        if not isinstance(request, TrainingRequest):
            pods = gang(request, found, pool)
            yield from self._near(pods, found.wish, None, found.cost_per_hour, loss)
            return
        level = _level(found.offers, request.goal)
        for offer in found.offers:
            pods = gang_of(offer.count, request, pool)
            if offer in level:
                lost = loss * (1 + SLOWER_LOSS * level.index(offer))
            else:
                lost = loss * self._times(offer)
            yield from self._near(pods, offer.wish, offer.seconds, offer.cost_per_hour, lost)

    def _times(self, offer: CountOffer) -> float:
        """How many times the objective of the pool's own candidate."""
        if not offer.objective_value or not self.candidate.objective_value:
            return 1.0
        return offer.objective_value / self.candidate.objective_value

    def _is_blocked(self, pods: Gang, wish: Wish) -> bool:
        """Whether its pods find no room now for what they ask beside accelerators."""
        if not (pods.asks_more or self.situation.may_run_out_of_pods(self._pool)):
            return False
        return self.situation.nodes_for(pods, self._pool, wish) is None

    def _near(
        self, pods: Gang, wish: Wish, seconds: Interval | None, cost: float | None, loss: float
    ) -> Iterator[Option]:
        """As close together as the workload insists on, once for each level that would do."""
        pool = self._pool
        is_blocked = self._is_blocked(pods, wish)
        millicores = math.ceil(pods.cores * MILLICORES)
        for level in wish.levels if wish.must_share else ("",):
            yield Option(
                pool=pool.name,
                pods=pods.pods,
                accelerators_per_pod=millicores if pool.is_cpu else pods.accelerators,
                seconds=seconds,
                cost_per_hour=cost or 0.0,
                objective=Interval(loss, loss, loss),
                one_per_node=pods.one_per_node,
                level=level,
                is_blocked=is_blocked,
                is_on_cpu=pool.is_cpu,
            )

    @property
    def _pool(self) -> Pool:
        return self.situation.ledger.pools[self.candidate.pool]


def _level(offers: Iterable[CountOffer], goal: Goal) -> list[CountOffer]:
    """Those whose cost (or joules) are as good as the least, the fastest first."""
    values = [(each.objective_value, each) for each in offers]
    known = [(value, each) for value, each in values if value is not None]
    if goal is Goal.TIME or not known:
        return []
    most = as_cheap_as(min(value for value, _ in known))
    return sorted((each for value, each in known if value <= most), key=lambda one: one.seconds.mid)
