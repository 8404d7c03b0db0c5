"""What those behind need, and who of them would lose the last place to a service.

A service gives nothing back. So one accelerator of it may cost a gang for good the node, the domain
or the pool that it cannot do without, while a price is the same on all nodes of a pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from poolwise.plan.joint.bids import Bid
from poolwise.plan.joint.problem import Option
from poolwise.plan.joint.timeline import Timeline

Shape = tuple[str, int, int, bool, str]
"""Pool, pods, accelerators of each, whether each has a node of its own, level."""
Kind = tuple[Shape, ...]
"""Of workloads: the shapes that each may have."""


class Needs:
    """Of workloads, alike ones together. Changed by :meth:`served`."""

    def __init__(self, bids: Iterable[Bid]) -> None:
        self._by_pool: dict[str, dict[Shape, Option]] = {}
        """By shape one that has it."""
        self._kinds = {each.workload.key: self._kind(each) for each in bids if not each.is_hopeless}
        self._left = Counter(self._kinds.values())

    def served(self, bid: Bid) -> None:
        """It has its turn, and is behind nobody any more."""
        kind = self._kinds.get(bid.workload.key)
        if kind is not None:
            self._left[kind] -= 1

    def doomed(self, option: Option, nodes: Mapping[str, int], timeline: Timeline) -> int:
        """Workloads behind that could never start any more, once these nodes are taken for good."""
        taken = {node: pods * option.accelerators_per_pod for node, pods in nodes.items()}
        here = self._by_pool.get(option.pool, {}).items()
        lost = {
            shape
            for shape, each in here
            if not timeline.holds_ever(each, taken) and timeline.holds_ever(each, {})
        }
        if not lost:
            return 0
        return sum(
            count
            for kind, count in self._left.items()
            if count > 0
            and not lost.isdisjoint(kind)
            and not any(self._has_place(shape, timeline) for shape in kind if shape not in lost)
        )

    def _kind(self, bid: Bid) -> Kind:
        found: dict[Shape, Option] = {}
        for offer in bid.offers:
            each = offer.option
            size, is_alone = each.accelerators_per_pod, each.one_per_node
            found[each.pool, each.pods, size, is_alone, each.level] = each
        for shape, each in found.items():
            self._by_pool.setdefault(each.pool, {})[shape] = each
        return tuple(sorted(found))

    def _has_place(self, shape: Shape, timeline: Timeline) -> bool:
        return timeline.holds_ever(self._by_pool[shape[0]][shape], {})
