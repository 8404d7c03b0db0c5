"""Services that another autoscaler scales too: what it set is what they hold and cost.

Poolwise leaves such a number as it finds it (:mod:`poolwise.plan.live.rivals`). What is declared on
the children counts, as far as there is room: pods beyond it wait for a node, and hold nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from poolwise.plan.candidates.situation import Situation
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Claim, Holding, Key, Outcome, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.live.look import mode_of
from poolwise.plan.live.rescaling import Rescaling
from poolwise.plan.live.rivals import rival
from poolwise.plan.observed import Object, Observed
from poolwise.plan.requests.request import ServingRequest


def contested(observed: Observed, entries: Iterable[Entry]) -> Mapping[Key, Mapping[str, int]]:
    """Replicas by pool, as the children of such services are told to have them."""
    nearby = defaultdict[str, list[Object]](list)
    for each in observed.autoscalers:
        nearby[each["metadata"].get("namespace", "")].append(each)
    if not nearby:
        return {}
    modes = {key_of(service): mode_of(service) for service in observed.inference_services}
    found: dict[Key, Mapping[str, int]] = {}
    for entry in entries:
        key, further = entry.identity.key, [each.pool for each in entry.parts]
        if key in modes and rival(key, modes[key], nearby.get(key.namespace, ()), further):
            found[key] = entry.state.declared
    return found


def as_they_are(
    entries: Iterable[Entry], declared: Mapping[Key, Mapping[str, int]]
) -> Iterator[Entry]:
    """Entries that are planned again with the replicas that they have. The number of their spec, or
    of the peak that it declares, would be held for them, and spread over further pools."""
    for entry in entries:
        request = entry.serving
        is_ours = entry.identity.key not in declared
        if is_ours or request is None or entry.holds is None:
            yield entry
            continue
        there = sum(each.replicas or 0 for each in (entry.holds, *entry.parts))
        yield entry.asking(replace(request, given_replicas=there, max_cost_per_hour=None))


def as_declared(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    declared: Mapping[Key, Mapping[str, int]],
    outcomes: dict[Key, Outcome],
    situation: Situation,
) -> Situation:
    """What is left once services that are kept have the replicas that are declared.

    ``outcomes`` gets their new plans.
    """
    for entry in entries:
        key, request = entry.identity.key, entry.serving
        plan = outcomes.get(key)
        if key not in declared or request is None:
            continue
        if isinstance(plan, Plan) and plan.kept:
            service = _Service(entry, request, claims, declared[key])
            first, situation = service.counted(replace(plan, parts=()), key, situation)
            parts: list[Plan] = []
            for each in plan.parts:
                part, situation = service.counted(each, (key, each.pool or ""), situation)
                parts.append(part)
            outcomes[key] = replace(first, parts=tuple(parts))
    return situation


@dataclass(frozen=True, slots=True)
class _Service:
    """One service on all its pools."""

    entry: Entry
    request: ServingRequest
    claims: Mapping[Holding, Claim]
    declared: Mapping[str, int]

    def counted(self, plan: Plan, holding: Holding, situation: Situation) -> tuple[Plan, Situation]:
        """The plan of one pool with what is declared there."""
        record = plan.record
        count = self.declared.get(record.pool) if record else None
        if record is None or count is None or count == record.replicas:
            return plan, situation
        claim = self.claims.get(holding, record.claim)
        found = Rescaling(self.request, record, claim, situation).as_it_is(count)
        if found is None:
            return plan, situation
        again, situation = found
        return self.entry.kept_on(again), situation
