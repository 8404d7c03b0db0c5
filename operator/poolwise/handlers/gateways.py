"""Gateways before services, as the cache knows them in one round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    INFERENCE_POOLS,
    INFERENCE_SERVICES,
    OLD_INFERENCE_POOLS,
    OTHER_SERVICES,
    PODS,
)
from poolwise.cluster.scraping import Target
from poolwise.plan.children.metadata import key_of, serving_labels
from poolwise.plan.decision import Key
from poolwise.plan.gateway.fronts import Front, Labels, front
from poolwise.plan.gateway.pickers import pickers
from poolwise.plan.gateway.pools import GROUPS, InferencePool, inference_pool
from poolwise.plan.gateway.reading import ENGINE
from poolwise.plan.observed import Object


@dataclass(frozen=True, slots=True)
class Gateway:
    """What stands before one service, and whom to ask of its queue."""

    front: Front
    targets: tuple[Target, ...] = ()
    unasked: str = ""
    """Why there is nobody to ask, as a clause."""


class Gateways:
    """Of one round: pods are gone through once, and only where an InferencePool is."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def before(self, key: Key, pods: Sequence[Labels]) -> Gateway:
        """Of a service whose pods have these labels, on each of its AcceleratorPools."""
        found = front(key, pods, self._pools[key.namespace], self._others(key))
        if found.pool is None:
            return Gateway(self._explained(found))
        if not found.pool.picker:
            return Gateway(found, unasked=found.pool.problem)
        service = self._cache.get(OTHER_SERVICES, key.namespace, found.pool.picker)
        asked = pickers(found.pool, service, self._pods[key.namespace])
        if isinstance(asked, str):
            return Gateway(found, unasked=asked)
        return Gateway(
            found,
            tuple(
                Target(each.uid, each.name, each.address, each.port, ENGINE, key.namespace)
                for each in asked
            ),
        )

    def _explained(self, found: Front) -> Front:
        """With why InferencePools may be there that nobody sees."""
        off = next((each for group in GROUPS if (each := self._cache.apis_off.get(group))), "")
        if not off or self._has_pools:
            return found
        return Front(found.pool, found.reason, off)

    @property
    def _has_pools(self) -> bool:
        return any(self._pools.values())

    @cached_property
    def _pools(self) -> defaultdict[str, list[InferencePool]]:
        """By namespace; the same one that both APIs tell counts once."""
        found: defaultdict[str, list[InferencePool]] = defaultdict(list)
        for document in self._documents():
            known, pool = found[document["metadata"]["namespace"]], inference_pool(document)
            if pool not in known:
                known.append(pool)
        return found

    def _documents(self) -> Iterator[Object]:
        for resource in (INFERENCE_POOLS, OLD_INFERENCE_POOLS):
            yield from self._cache.stores[resource]

    @cached_property
    def _pods(self) -> defaultdict[str, list[Object]]:
        found: defaultdict[str, list[Object]] = defaultdict(list)
        for pod in self._cache.stores[PODS]:
            if self._pools.get(pod["metadata"].get("namespace")):
                found[pod["metadata"]["namespace"]].append(pod)
        return found

    @cached_property
    def _services(self) -> defaultdict[str, dict[Key, Labels]]:
        """With the labels of their pods, by namespace."""
        found: defaultdict[str, dict[Key, Labels]] = defaultdict(dict)
        for key in map(key_of, self._cache.stores[INFERENCE_SERVICES]):
            found[key.namespace][key] = serving_labels(key, leaders_only=False)
        return found

    def _others(self, key: Key) -> Iterable[Labels]:
        if not self._pools.get(key.namespace):
            return ()
        there = self._services[key.namespace].items()
        return (labels for other, labels in there if other != key)
