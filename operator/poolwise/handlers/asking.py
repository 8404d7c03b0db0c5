"""What a look asks the planner for: another number, replicas on further pools."""

from __future__ import annotations

from poolwise.cluster.cache import Cache
from poolwise.handlers.planner import Planner
from poolwise.handlers.turn import Turn
from poolwise.plan.decision import Key, Plan
from poolwise.plan.live.look import Look, Mode
from poolwise.plan.records.running import is_overflow
from poolwise.plan.scaling.decision import Decision, Remark


class Asking:
    """Asks the planner, by ``cache.scaling``, ``overflow`` and ``least_replicas``."""

    def __init__(self, cache: Cache, planner: Planner) -> None:
        self._cache = cache
        self._planner = planner

    def leave(self, key: Key, least_replicas: int | None) -> None:
        """Have drains of nodes leave so many."""
        known = self._cache.least_replicas
        if known.get(key, -1) != least_replicas:
            known[key] = least_replicas
            self._planner.look_again(key, 0)

    def carry_out(self, turn: Turn, look: Look) -> bool:
        """Ask for another pass where the number differs; whether it does."""
        scaling, first, decision = self._cache.scaling, turn.placed, look.decision
        wanted, is_new = decision.by_pool.get(first.pool.name, 0), False
        before = scaling.get(turn.key)
        is_early = decision.memory.is_young(look.now.timestamp())
        if not look.moves or turn.mode is not Mode.DIRECT:
            scaling.pop(turn.key, None)
        elif is_early and wanted <= self._planned(turn):
            # Nothing is let go yet, so it is no word against a peak that was declared meanwhile.
            scaling.pop(turn.key, None)
        else:
            scaling[turn.key] = wanted
        if look.moves and turn.mode is not Mode.OFF:
            is_new = self._overflow(turn, decision)
        else:
            self._cache.overflow.pop(turn.key, None)
        number = scaling.get(turn.key, first.record.replicas)
        is_known = scaling.get(turn.key) == before or not self._has_no_place(turn)
        differs = is_new or number != first.record.replicas or not is_known
        if differs:
            self._planner.want(turn.key)
        return differs

    def _has_no_place(self, turn: Turn) -> bool:
        """Whether its spec waits for one, which what its load asks for may give it."""
        outcome = self._planner.decisions.outcomes.get(turn.key)
        return isinstance(outcome, Plan) and not outcome.placed

    def _planned(self, turn: Turn) -> int:
        """Replicas on the first pool by the newest plan, which may be younger than the look."""
        outcome = self._planner.decisions.outcomes.get(turn.key)
        plan = outcome.running if isinstance(outcome, Plan) else None
        record = plan.record if plan and plan.record else turn.placed.record
        return record.replicas or 0

    def _overflow(self, turn: Turn, decision: Decision) -> bool:
        """Ask for replicas on further pools, or where there is room for some; whether another pass
        is due for it. Where others set the number, the room alone is asked for."""
        overflow, first = self._cache.overflow, turn.placed.pool.name
        wanted = {
            pool: count for pool, count in decision.by_pool.items() if count and pool != first
        }
        is_short = bool({Remark.AT_CAPACITY, Remark.AT_COST_LIMIT} & decision.remarks.keys())
        if not (wanted or self._runs_further(turn) or is_short):
            overflow.pop(turn.key, None)
            return False
        is_asked = turn.key in overflow
        overflow[turn.key] = wanted
        is_moved = turn.mode is Mode.DIRECT and wanted != turn.held_elsewhere
        return is_moved or not is_asked

    def _runs_further(self, turn: Turn) -> bool:
        """Whether it has replicas on further pools, or what runs them is not deleted yet."""
        children = self._cache.children_of(turn.resource["metadata"]["uid"])
        return bool(turn.parts) or any(map(is_overflow, children))
