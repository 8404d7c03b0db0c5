"""The kinds of replicas that a service has or could have: one for each pool, as its controller sees
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from poolwise.api import InferenceServiceSpec
from poolwise.handlers.planner import Planner
from poolwise.handlers.turn import Known, Turn
from poolwise.model.efficiency import Calibration
from poolwise.plan.children.budget import longest_over_told
from poolwise.plan.decision import Key, Plan
from poolwise.plan.gateway.zero import Zero, asks_for_zero, least_replicas
from poolwise.plan.live.further import recorded
from poolwise.plan.live.overdue import Overdue
from poolwise.plan.live.seen import measured_start_seconds, pool_by_maker, start_seconds
from poolwise.plan.live.service import Placed
from poolwise.plan.scaling.service import Pool as Kind
from poolwise.plan.scaling.service import Predictor, Service
from poolwise.settings import Settings


class Kinds:
    """From the newest decisions."""

    def __init__(self, planner: Planner, settings: Settings, calibration: Calibration) -> None:
        self._planner = planner
        self._settings = settings
        self._calibration = calibration

    def elsewhere(
        self, placed: Placed, plan: Plan, spec: InferenceServiceSpec
    ) -> tuple[tuple[Placed, ...], tuple[Placed, ...]]:
        """The service on further pools, and on those that it could go on to."""
        pools = self._planner.decisions.pools_by_name
        parts = [
            Placed(placed.name, placed.request, part.record, pools[part.record.pool])
            for part in plan.parts
            if part.record and part.record.pool in pools
        ]
        taken = {placed.pool.name, *(each.pool.name for each in parts)}
        found = self._planner.decisions.rooms.get(plan.key)
        longest = longest_over_told(spec, self._settings)
        offers = [
            Placed(
                placed.name,
                placed.request,
                recorded(plan, each.candidate, pool, self._settings, longest),
                pool,
            )
            for each in (found.elsewhere if found else ())
            if (pool := pools.get(each.candidate.pool)) is not None and pool.name not in taken
        ]
        return _with_machine(parts), _with_machine(offers)

    def rooms(self, key: Key) -> dict[str, int]:
        """For so many more replicas on further pools, by name."""
        found = self._planner.decisions.rooms.get(key)
        return {each.candidate.pool: each.room for each in (found.elsewhere if found else ())}

    def by_maker(self, key: Key) -> dict[str, str]:
        """As :func:`pool_by_maker`, for all pools."""
        return pool_by_maker(key.name, (pool.name for pool in self._planner.decisions.pools))

    def service(
        self, turn: Turn, known: Known, late: Mapping[str, Overdue], with_offers: bool = False
    ) -> Service:
        """On the pools that it is on; or also on those that it could go on to."""
        placed = turn.placed
        predictor = self._predictor(known, placed)
        if known.predictor is not predictor:
            known.predictor, known.log_band = predictor, placed.log_band(self._calibration)
        others = (*turn.parts, *(turn.offers if with_offers or turn.parts else ()))
        found = placed.service(
            predictor,
            self.start_seconds(turn, known, placed),
            self._room(placed, turn.key),
            self._settings.scaling_interval_seconds,
            late[placed.pool.name].missing,
            tuple(self._further(turn, known, others, late)),
        )
        zero = self.zero(turn, known)
        return replace(
            found,
            is_even=found.is_even and not turn.is_routed(each.name for each in found.pools),
            can_scale_to_zero=zero is not None
            and zero.may_fall
            and not any(each.names for each in late.values()),
        )

    def zero(self, turn: Turn, known: Known) -> Zero | None:
        """What is known of having no replica; None of who does not ask for it."""
        if known.holding is None or not asks_for_zero(turn.resource):
            return None
        return Zero(
            known.holding,
            turn.is_asleep,
            self.start_seconds(turn, known, turn.placed),
            least_replicas(turn.resource),
            self._settings.gateway_seconds,
        )

    def _room(self, placed: Placed, key: Key) -> int | None:
        """By the nodes where the planner looked at them, else by accelerators that nobody holds."""
        found = self._planner.decisions.rooms.get(key)
        if found is not None:
            return found.here
        free = self._planner.decisions.free_accelerators.get(placed.pool.name)
        return None if free is None or not placed.record.count else free // placed.record.count

    def _further(
        self, turn: Turn, known: Known, others: tuple[Placed, ...], late: Mapping[str, Overdue]
    ) -> Iterator[Kind]:
        """Those of a pool that does not start leave it."""
        usual = turn.placed.cost_per_hour
        for each in others:
            name, held = each.pool.name, each.record.replicas or 0
            missing = late[name].missing if name in late else 0
            start, more = self.start_seconds(turn, known, each), turn.rooms.get(name, 0)
            kind = each.kind(self._predictor(known, each), start, 0, usual)
            yield replace(kind, most_replicas=max(held - missing, 0) + (0 if missing else more))

    def _predictor(self, known: Known, placed: Placed) -> Predictor:
        """The same object while the placement stays: capabilities are remembered by it."""
        name = placed.pool.name
        of = (known.version, placed.layout, placed.pool.machine)
        if name not in known.predictors or known.predictors[name][0] != of:
            known.predictors[name] = (of, placed.predictor(self._calibration))
        return known.predictors[name][1]

    def gateway(self, turn: Turn, known: Known, now_seconds: float) -> dict[str, Any]:
        """What a status tells of the gateway before it."""
        if known.holding is None or not known.holding.pool:
            return {}
        return {
            "inferencePool": known.holding.pool,
            "heldRequests": known.holding.held_requests,
            "wakeUpSeconds": self.start_seconds(turn, known, turn.placed),
            **known.clients.told(turn.placed.reported, now_seconds),
        }

    def start_seconds(self, turn: Turn, known: Known, placed: Placed) -> float:
        """What a start takes on one pool, learned while replicas were there."""
        pods, name = turn.pods_on(placed), placed.pool.name
        budget_seconds = float(placed.record.start_budget_seconds or 0)
        told = measured_start_seconds(pods, budget_seconds)
        if told is not None:
            known.start_seconds[name] = told
        is_first = name == turn.placed.pool.name
        known_seconds = known.start_seconds.get(name, turn.told_start_seconds if is_first else None)
        return start_seconds(pods, budget_seconds, known_seconds)


def _with_machine(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    return tuple(each for each in placed if each.pool.machine)
