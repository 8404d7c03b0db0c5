"""What Poolwise answers to its AdmissionCheck: a pool within the flavor, and one domain of it.

The check comes after the quota, so the flavor is settled; what is left to say is which pool of that
flavor has room for all pods now, and where they are close together. ``Ready`` names it in the pods'
node selector, ``Retry`` gives the quota back for a while, and ``Rejected`` is for what no node of
the flavor could ever hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolwise.plan.candidates.topology import shared_domain
from poolwise.plan.decision import Claim, Key, Kind
from poolwise.plan.kueue.guests import Guest, PodSet
from poolwise.plan.kueue.pinning import covers
from poolwise.plan.kueue.reading import Flavor
from poolwise.plan.kueue.words import ADMITTED, CheckState
from poolwise.plan.ledger.capacity import Gang, Ledger
from poolwise.plan.names import POOL
from poolwise.plan.observed import CheckAnswer
from poolwise.plan.pool import Pool
from poolwise.plan.wording import amount_of, are_free, plural

RETRY_SECONDS = 60
"""Quota that cannot be used now is given back for so long; Kueue asks again then."""
TOLERATIONS_LIMIT = 8
"""Of one pod set, in Kueue's API."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers one after the other, each on what the ones before have left."""

    pools: Sequence[Pool]
    flavors: Mapping[str, Flavor]

    def let_in(self, ledger: Ledger, guests: Iterable[Guest]) -> Ledger:
        """The ledger with what was promised to guests whose pods no node has taken yet."""
        for guest in guests:
            if guest.state is CheckState.READY:
                for claim in self._promised(ledger, guest):
                    ledger = ledger.with_claim(claim)
        return ledger

    def answers(
        self, ledger: Ledger, guests: Iterable[Guest]
    ) -> dict[tuple[str, str], CheckAnswer]:
        """To all who wait for one."""
        found = {}
        for guest in guests:
            if guest.state is CheckState.PENDING:
                answer, ledger = self._answer(ledger, guest)
                found[guest.namespace, guest.name] = answer
        return found

    def _promised(self, ledger: Ledger, guest: Guest) -> Iterable[Claim]:
        missing = sum(each.pods for each in guest.pod_sets) - guest.bound
        for each in guest.pod_sets:
            pool = ledger.pools.get(guest.pools.get(each.name, ""))
            pods = min(each.pods, missing)
            if pool is None or pods <= 0:
                continue
            missing -= pods
            gang = _gang(each, pods)
            nodes = ledger.fit(pool, gang)
            if nodes is not None:
                yield gang.claim(_key(guest), pool.name, nodes)

    def _answer(self, before: Ledger, guest: Guest) -> tuple[CheckAnswer, Ledger]:
        """With what it leaves to the next: all of it, unless the whole job is let in."""
        ledger, updates, told = before, list[dict[str, Any]](), list[str]()
        for each in guest.pod_sets:
            if each.resource is None:
                updates.append({"name": each.name})
                continue
            fitting = [pool for pool in self.pools if self._is_meant(pool, each, guest)]
            placed = _placed(ledger, fitting, each)
            if placed is None:
                return self._no(guest, each, fitting, ledger), before
            pool, nodes = placed
            updates.append(_update(guest, each, pool, nodes, self._flavor(each)))
            told.append(f"{each.name}: {plural(each.pods, 'pod')} in {pool.name}")
            ledger = ledger.with_claim(_gang(each, each.pods).claim(_key(guest), pool.name, nodes))
        message = "; ".join(told) or "asks for no accelerators: nothing to place"
        return CheckAnswer(
            guest.check, CheckState.READY, message, pod_set_updates=tuple(updates)
        ), ledger

    def _flavor(self, each: PodSet) -> Flavor | None:
        return self.flavors.get(each.flavors.get(each.resource or "", ""))

    def _is_meant(self, pool: Pool, each: PodSet, guest: Guest) -> bool:
        """Whether the flavor that Kueue chose, and the job's own selector, allow the pool."""
        flavor = self._flavor(each)
        own = Flavor("", each.selector)
        return (
            pool.resource == each.resource
            and pool.unusable_reason is None
            and bool(pool.usable_nodes)
            and (not pool.allowed_namespaces or guest.namespace in pool.allowed_namespaces)
            and (flavor is None or covers(flavor, pool))
            and covers(own, pool)
        )

    def _no(self, guest: Guest, each: PodSet, pools: Sequence[Pool], ledger: Ledger) -> CheckAnswer:
        flavor = each.flavors.get(each.resource or "", "?")
        size = each.each.accelerators.get(each.resource or "", 0)
        largest = max((pool.accelerators_per_node for pool in pools), default=0)
        beside = (f" and {amount_of(*asked)}" for asked in each.each.beside(each.resource))
        wanted = f"{plural(each.pods, 'pod')} with {size} x {each.resource}{''.join(beside)}"
        if pools and size > largest:
            told = f"{each.name}: {wanted}; no node of flavor {flavor} has more than {largest}"
            return CheckAnswer(guest.check, CheckState.REJECTED, told)
        if not pools:
            told = f"{each.name}: {wanted}; no pool that Poolwise can use is of flavor {flavor}"
        else:
            free = ", ".join(f"{pool.name} has {_room(ledger, pool, each)}" for pool in pools)
            told = f"{each.name}: {wanted}; {free}"
        return CheckAnswer(guest.check, CheckState.RETRY, told, requeue_after_seconds=RETRY_SECONDS)


def _placed(
    ledger: Ledger, pools: Iterable[Pool], each: PodSet
) -> tuple[Pool, dict[str, int]] | None:
    """The cheapest pool with room for all, in the nearest domain of its fabric that has it."""
    gang = _gang(each, each.pods)
    for pool in sorted(pools, key=_cost):
        nodes = ledger.fit(pool, gang, pool.topology_keys)
        if nodes is not None:
            return pool, nodes
    return None


def _cost(pool: Pool) -> tuple[bool, float, str]:
    """Of one accelerator for an hour; unknown prices come last."""
    if pool.price is None:
        return True, 0.0, pool.name
    return False, pool.price.per_node_hour / max(pool.accelerators_per_node, 1), pool.name


def _gang(each: PodSet, pods: int) -> Gang:
    size = each.each.accelerators.get(each.resource or "", 0)
    asked, others = each.each, each.each.beside(each.resource)
    return Gang(pods, size, asked.cores, asked.memory_bytes, packs=True, others=others)


def _room(ledger: Ledger, pool: Pool, each: PodSet) -> str:
    room = ledger.most_pods(pool, _gang(each, each.pods))
    return f"room for {room} ({are_free(ledger.free(pool), ledger.total(pool))})"


def _update(
    guest: Guest, each: PodSet, pool: Pool, nodes: Mapping[str, int], flavor: Flavor | None
) -> dict[str, Any]:
    """What Kueue adds to the pods: only what neither they nor the flavor say already."""
    known = {**(flavor.labels if flavor else {}), **each.selector}
    domain = shared_domain(nodes, pool, pool.topology_keys) if len(nodes) > 1 else {}
    wanted = {**pool.node_selector, **domain}
    return {
        "name": each.name,
        "nodeSelector": {k: v for k, v in sorted(wanted.items()) if k not in known},
        "tolerations": [dict(toleration) for toleration in pool.tolerations[:TOLERATIONS_LIMIT]],
        "labels": {ADMITTED: guest.uid},
        "annotations": {POOL: pool.name},
    }


def _key(guest: Guest) -> Key:
    """Whose claim it is: Kueue's name for the job."""
    return Key(Kind.TRAINING_JOB, guest.namespace, guest.name)
