"""Which of the nodes with room a gang takes, so that what others need stays whole.

Whole domains of the fabric are what gangs over several nodes need, and whole nodes what gangs on
one node need. So pods go where something is broken already, and only else break what is whole.
Nodes with labels of a nearer level keep their gang together; of a gang that no domain holds, as
few domains as possible get a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from poolwise.plan.nodes.topology_labels import ZONE_KEY
from poolwise.plan.pool import Node, Pool
from poolwise.plan.wording import plural


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of the level that is kept whole, before anything is placed."""

    name: str
    total: int
    """Accelerators of its usable nodes."""
    free: int

    @property
    def is_whole(self) -> bool:
        """Whether nobody holds a part of it."""
        return 0 < self.total == self.free


NOWHERE = Domain("", 0, -1)
"""Of a node without a label: nothing to keep whole."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A node with room for some pods of a gang."""

    node: Node
    slots: int
    left_over: float
    """Accelerators, or cores on CPU, that are free before anything is placed."""
    strands: float
    """Accelerators that a pod here leaves without cores or memory, more than there are now."""
    domain: Domain = NOWHERE

    @property
    def order(self) -> tuple[bool, bool, float, float, str, float, float, str]:
        """Nodes that are there before those to come, and those of broken domains before those of
        whole ones. Then where a pod strands least, and of these the one with least left over (best
        fit). Whole domains are opened one after another, the smallest first."""
        domain, is_whole = self.domain, self.domain.is_whole
        strands, left_over = self.strands, self.left_over
        first, second = (domain.free, 0.0) if is_whole else (strands, left_over)
        inside = (strands, left_over) if is_whole else (float(domain.free), 0.0)
        name = domain.name if is_whole else ""
        return (self.node.is_to_come, is_whole, first, second, name, *inside, self.node.name)


@dataclass(frozen=True, slots=True)
class Breakage:
    """What a placement takes from those who need whole domains."""

    level: str = ""
    domains: tuple[str, ...] = ()
    """That were whole, and that it leaves in part."""
    accelerators: int = 0
    """Free ones whose domain is whole no more."""

    def words(self) -> str:
        """A clause; empty where nothing is broken."""
        if not self.accelerators:
            return ""
        rest = plural(self.accelerators, "other accelerator")
        return f"breaks {plural(len(self.domains), 'whole domain')} of {self.level}: {rest} in it"


Levels = Mapping[str, Mapping[str, Domain]]
"""Domains by level and node."""


@dataclass(frozen=True, slots=True)
class Pods:
    """What is to be placed, as far as slots are concerned."""

    count: int
    packs: bool
    """They fill nodes one after another; else they go to as many nodes as there are."""
    one_per_node: bool


def choose(
    openings: Sequence[Opening], pods: Pods, levels: Levels, must_share: bool
) -> dict[str, int] | None:
    """Pods by node; None where they find no room.

    ``levels``, nearest first: all pods go into one domain of the nearest that has room, the fullest
    such domain, and else anywhere, unless they must share one.
    """
    nearer: list[str] = []
    for level, domains in levels.items():
        for group in _groups(openings, pods, domains):
            chosen = _placed(group, pods, nearer)
            if chosen is not None:
                return chosen
        nearer.append(level)
    return None if must_share else _placed(openings, pods, nearer)


def kept_whole(pool: Pool) -> str:
    """The level whose domains are kept whole: the one that the accelerators' own link joins, else
    the nearest with several nodes to a domain; empty: none."""
    if pool.link_level:
        return pool.link_level
    levels = (key for key in pool.topology_keys if key != ZONE_KEY)
    return next((key for key in levels if _has_several(pool, key)), "")


def domains_of(nodes: Iterable[tuple[Node, int]], level: str) -> dict[str, Domain]:
    """Domains by node, of nodes with the accelerators that they have free."""
    if not level:
        return {}
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    values = {}
    for node, left in nodes:
        value = node.labels.get(level)
        if value:
            values[node.name] = value
            total[value] += node.accelerators
            free[value] += left
    found = {value: Domain(value, total[value], free[value]) for value in total}
    return {name: found[value] for name, value in values.items()}


def breakage(
    level: str, domains: Mapping[str, Domain], accelerators_by_node: Mapping[str, int]
) -> Breakage:
    """Of whole domains that are taken in part. Who takes all of a domain breaks nothing."""
    taken: Counter[str] = Counter()
    whole: dict[str, Domain] = {}
    for node, count in accelerators_by_node.items():
        domain = domains.get(node, NOWHERE)
        if domain.is_whole:
            whole[domain.name] = domain
            taken[domain.name] += count
    left = {name: each.total - taken[name] for name, each in sorted(whole.items())}
    broken = {name: count for name, count in left.items() if count > 0}
    return Breakage(level, tuple(broken), sum(broken.values())) if broken else Breakage()


def _placed(
    openings: Sequence[Opening], pods: Pods, nearer: Sequence[str]
) -> dict[str, int] | None:
    """In a domain, or anywhere; no domain of a level nearer than that takes all pods."""
    if sum(each.slots for each in openings) < pods.count:
        return None
    if nearer and pods.one_per_node:
        openings = _of_fewest(openings, pods, nearer[0])
    ordered = sorted(openings, key=lambda each: each.order)
    if pods.packs:
        return _packed(ordered, pods.count)
    anywhere = _spread(ordered, pods.count)
    broken = _spread([each for each in ordered if not each.domain.is_whole], pods.count)
    is_as_even = broken and anywhere and len(broken) >= len(anywhere)
    return broken if is_as_even else anywhere


def _groups(
    openings: Iterable[Opening], pods: Pods, domains: Mapping[str, Domain]
) -> list[list[Opening]]:
    """Openings by domain: first domains that are broken already, or that the pods use up, and of
    these the one with the fewest slots."""
    groups: dict[str, list[Opening]] = {}
    whole = set()
    for each in openings:
        domain = domains.get(each.node.name)
        if domain is not None:
            groups.setdefault(domain.name, []).append(each)
            if domain.is_whole:
                whole.add(domain.name)

    def order(name: str) -> tuple[bool, int, str]:
        slots = sum(each.slots for each in groups[name])
        return name in whole and slots > pods.count, slots, name

    return [groups[name] for name in sorted(groups, key=order)]


def _of_fewest(openings: Iterable[Opening], pods: Pods, level: str) -> list[Opening]:
    """Openings in as few domains as take all pods: the largest as long as all of it is needed,
    and for the rest the smallest that takes it."""
    domains: dict[str, list[Opening]] = {}
    for each in openings:
        domains.setdefault(each.node.labels.get(level, ""), []).append(each)
    apart = domains.pop("", [])
    rooms = sorted(domains.values(), key=lambda each: (len(each), each[0].node.name))
    chosen: list[Opening] = []
    while rooms and len(chosen) < pods.count:
        missing = pods.count - len(chosen)
        fitting = next((each for each in rooms if len(each) >= missing), rooms[-1])
        rooms.remove(fitting)
        chosen += sorted(fitting, key=lambda each: each.order)[:missing]
    return chosen if len(chosen) >= pods.count else [*chosen, *apart]


def _packed(ordered: Iterable[Opening], pods: int) -> dict[str, int] | None:
    """Pods by node: one node after another is filled."""
    chosen: dict[str, int] = {}
    missing = pods
    for each in ordered:
        if not missing:
            break
        chosen[each.node.name] = min(each.slots, missing)
        missing -= chosen[each.node.name]
    return None if missing else chosen


def _spread(ordered: Sequence[Opening], pods: int) -> dict[str, int] | None:
    """Pods by node: evenly, as their topology spread asks, onto the first nodes."""
    if sum(each.slots for each in ordered) < pods:
        return None
    chosen: Counter[str] = Counter()
    for takers in _turns(ordered):
        chosen.update(takers[: pods - chosen.total()])
        if chosen.total() == pods:
            break
    return dict(chosen)


def _turns(ordered: Sequence[Opening]) -> Iterator[list[str]]:
    """Nodes that have room for one more pod, turn by turn."""
    for turn in range(max((each.slots for each in ordered), default=0)):
        yield [each.node.name for each in ordered if each.slots > turn]


def _has_several(pool: Pool, level: str) -> bool:
    values = Counter(node.labels[level] for node in pool.nodes if node.labels.get(level))
    return max(values.values(), default=0) > 1
