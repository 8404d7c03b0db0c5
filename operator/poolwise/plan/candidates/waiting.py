"""Why a workload waits for a pool: what it needs, what is there, and who would have to end.

The sentences go into status, so they change when something happens and not while time passes:
moments to come are told in steps of twice the one before
(:func:`poolwise.plan.steps.remaining.about`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poolwise.model.prediction import Interval
from poolwise.plan.amounts import PODS, pods_in
from poolwise.plan.candidates.topology import can_ever_hold
from poolwise.plan.closeness import Wish
from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity import Gang, Ledger
from poolwise.plan.pool import Pool
from poolwise.plan.steps.remaining import about
from poolwise.plan.wording import amount_of, are_free, plural

_KINDS = {Kind.TRAINING_JOB: "job", Kind.INFERENCE_SERVICE: "service"}
_SHORT = {
    name: name.rpartition("-")[2]
    for name in ("gce-topology-host", "gce-topology-subblock", "gce-topology-block")
} | {
    name: name
    for name in (
        "leaf",
        "spine",
        "core",
        "block",
        "rack",
        "superpod",
        "leafgroup",
        "fabric",
        "zone",
    )
}
"""What people call a level, by the last part of its label."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A gang that fits the pool, only not now."""

    ledger: Ledger
    gang: Gang
    pool: Pool
    wish: Wish
    ends: Mapping[Key, Interval]
    """What remains of runs, in seconds, where that is known."""

    def told(self) -> str:
        """What is missing, who has it, and when that ends."""
        said = (self._missing(), *self._short(), self._blocker(), self._unusable())
        return "; ".join(filter(None, said))

    def _missing(self) -> str:
        gang, ledger, pool = self.gang, self.ledger, self.pool
        if pool.is_cpu:
            room = ledger.most_pods(pool, gang)
            replicas = plural(gang.pods, "replica")
            return f"{replicas} of {gang.cores:g} cores wanted, room for {room}"
        coming = ledger.total_to_come(pool)
        free = ledger.free(pool) + ledger.free_to_come(pool)
        wanted = gang.pods * gang.accelerators
        if free < wanted:
            more = ", nodes to come included" if coming else ""
            total = ledger.total(pool) + coming
            return f"{are_free(free, total)}{more}, needs {wanted}{self._in_one()}"
        return self._fragmented(free)

    def _fragmented(self, free: int) -> str:
        gang = self.gang
        room = self.ledger.most_pods(self.pool, gang)
        if room >= gang.pods:
            return self._apart(room)
        wanted = plural(gang.accelerators, "free accelerator")
        beside = " and what its pods ask beside them" if gang.asks_more else ""
        places = plural(gang.pods, "node" if gang.one_per_node else "place")
        joined = "with" if gang.one_per_node else "for"
        needs = f"needs {places} {joined} {wanted}{beside}{self._in_one()}"
        return f"{are_free(free)}, but {needs}, and has {room}"

    def _short(self) -> Iterator[str]:
        """Which resources beside devices, cores and memory too little is left of, and where."""
        rooms = [self.ledger.rooms[node.name].others for node in self.pool.usable_nodes]
        for name, each in ((PODS, 1.0), *self.gang.others):
            lacking = sum(pods_in(others, ((name, each),), 1) < 1 for others in rooms)
            where = f"{lacking} of {plural(len(rooms), 'node')}"
            if lacking and name == PODS:
                yield f"{where} can take no more pods"
            elif lacking:
                yield f"less than {amount_of(name, each)} is free on {where}"

    def _apart(self, room: int) -> str:
        """Enough nodes have room, only not in one domain."""
        level = self._level()
        if not level:
            return "needs nodes in one domain of the fabric, which no label describes"
        rooms = self._rooms(level)
        most = max(rooms.values(), default=0)
        told = f"{plural(room, 'free node')} are in {plural(len(rooms), level_word(level))}"
        return f"needs {self._nodes()}{self._in_one()}; {told}, at most {most} in one"

    def _nodes(self) -> str:
        """``2 whole H100-SXM5-80GB nodes``."""
        is_whole = self.gang.accelerators == self.pool.accelerators_per_node
        product = self.pool.accelerator or ""
        noun = f"whole {product} node" if is_whole else f"{product} node"
        free = "" if is_whole else f" with {self.gang.accelerators} free"
        return plural(self.gang.pods, noun) + free

    def _in_one(self) -> str:
        level = self._level() if self.wish.must_share else ""
        return f" in one {level_word(level)} ({level})" if level else ""

    def _level(self) -> str:
        """The level that it waits for: the nearest that could ever hold it."""
        levels = self.wish.levels
        able = (key for key in levels if can_ever_hold(key, self.gang, self.pool))
        return next(able, levels[-1] if levels else "")

    def _rooms(self, level: str) -> Counter[str]:
        """Nodes with room for a pod, by domain."""
        slots = self.ledger.slots(self.pool, self.gang)
        values = {node.name: node.labels.get(level) for node in self.pool.nodes}
        rooms: Counter[str] = Counter()
        for name in slots:
            if value := values[name]:
                rooms[value] += 1
        return rooms

    def _blocker(self) -> str:
        """The largest holder where room is nearest, and when it ends; else the one that does."""
        held = self._holders()
        if not held:
            return self._others()
        (largest, count), *others = held
        told = f"largest blocker: {_named(largest, count)}"
        if largest in self.ends:
            return f"{told}, ends in {about(self.ends[largest].mid)}{_more(len(others))}"
        ending = [each for each in others if each[0] in self.ends]
        if not ending:
            return told + _more(len(others))
        first, its = min(ending, key=lambda each: (self.ends[each[0]].mid, str(each[0])))
        ends = f"first to end: {_named(first, its)} in {about(self.ends[first].mid)}"
        return f"{told}; {ends}{_more(len(others) - 1)}"

    def _others(self) -> str:
        taken = self.ledger.total(self.pool) - self.ledger.free(self.pool)
        return f"{taken} are held by pods of others" if taken > 0 else ""

    def _holders(self) -> list[tuple[Key, int]]:
        """Who holds how much, the largest first: of the domain that lacks least, where one domain
        is needed."""
        level = self._level() if self.wish.must_share else ""
        if not level:
            return list(self.ledger.holders(self.pool).items())
        rooms, values = self._rooms(level), self.ledger.domains(self.pool, level)
        sizes = Counter(domain.name for domain in values.values())
        able = [name for name, size in sizes.items() if size >= self.gang.pods] or list(sizes)
        nearest = min(able, key=lambda name: (-rooms[name], name), default="")
        inside = {node for node, domain in values.items() if domain.name == nearest}
        return list(self.ledger.holders(self.pool, inside).items())

    def _unusable(self) -> str:
        """Nodes that could take a pod if only they were usable."""
        out = [node for node in self.pool.nodes if node.unusable_reason]
        if not out:
            return ""
        first = min(out, key=lambda node: node.name)
        more = f" and {len(out) - 1} more like it" if len(out) > 1 else ""
        return f"not counted: {first.name} {first.unusable_reason}{more}"


def level_word(level: str) -> str:
    """What people call a level: ``block``; where that is not known, a domain of its label."""
    last = level.rpartition("/")[2]
    if last in _SHORT:
        return _SHORT[last]
    return "NVLink domain" if last in ("gpu.clique", "nvlink.domain") else "domain"


def _named(key: Key, count: int) -> str:
    return f"{_KINDS[key.kind]} {key.namespace}/{key.name}" + (f" ({count})" if count else "")


def _more(count: int) -> str:
    return f"; {count} more {'holds' if count == 1 else 'hold'} some" if count else ""
