"""Which level of the fabric a gang has to share: what the spec says, else what the step says.

Mode Auto asks how much of a step communication between nodes would take if no two of them shared
the accelerators' own link: the part of the step that grows where the network is slower.

- below ``LITTLE``: nodes anywhere. It never waits for closeness, and leaves whole domains to
  those who need them;
- below ``DOMINANT``: near each other where there is room, else anywhere;
- from there on: in one domain of the nearest level that could ever hold the gang.

Both are read off measurements: ``python -m bench.closeness`` has 4,295 pairs of Sia's step times,
the same accelerators and batch on one node and on several. Of the 2,552 whose spread step was
communication for less than a fifth, 3.9 % took a tenth longer than the packed one, and none half
as long again. All 112 that took twice as long spent more than half of the step so (52 % at least):
then a wait for close nodes may be as long as the run itself, and nothing is lost.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.training.step import step_seconds
from poolwise.model.work import TrainingLayout, TrainingWork
from poolwise.plan.amounts import pods_in
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.pool import Node, Pool
from poolwise.plan.requests.request import Topology, Where
from poolwise.plan.wording import percent, sentence

LITTLE = 0.2
"""Share of a step: below it, nodes that are far apart cost next to nothing."""
DOMINANT = 0.5
"""Share of a step: from it on, they double its time."""
UNBOUNDED = 1e6
"""Times the network's rate, for a step that does not wait for it."""
LABEL_LIMIT = 64
"""Characters of a label that a sentence repeats."""


def wish(where: Where, gang: Gang, pool: Pool, share: Callable[[], float]) -> Wish:
    """How close the gang's nodes are to be in this pool.

    :param share: of a step for communication between nodes (:func:`communication_share`); only
        asked in mode Auto.
    """
    if not gang.one_per_node or gang.pods == 1:
        return ANYWHERE
    if where.topology is Topology.UNCONSTRAINED:
        return Wish(reason="nodes anywhere, as the spec says")
    given = where.topology_level
    if given and not _is_carried(given, pool):
        return _without_level(where, pool)
    levels = (given,) if given else pool.topology_keys
    if where.topology is Topology.REQUIRED:
        return Wish(levels, True, f"all nodes in one domain of {_named(levels)}: the spec says so")
    if not levels:
        return ANYWHERE
    if where.topology is Topology.PREFERRED:
        return Wish(levels, False, f"nodes as close as there is room: {_named(levels)} first")
    return _auto(levels, gang, pool, share())


def communication_share(
    work: TrainingWork, layout: TrainingLayout, machine: Machine, calibration: Calibration
) -> float:
    """Share of a step (0 to 1) for communication that leaves the node, where the accelerators'
    own link ends at the node: what a network without limit would save."""
    link = machine.interconnect
    ends = min(link.domain_accelerators, link.accelerators_per_node)
    apart = replace(link, domain_accelerators=ends)
    fast = replace(apart, inter_node_bytes_per_second=UNBOUNDED * link.inter_node_bytes_per_second)
    with_network, without = (
        step_seconds(work, layout, replace(machine, interconnect=each), calibration)
        for each in (apart, fast)
    )
    return max(0.0, 1.0 - without / with_network) if with_network > 0.0 else 0.0


def unknown_level(where: Where, pools: Iterable[Pool]) -> str | None:
    """One sentence for a level that the spec names and no node of any pool has; None: all is well.

    It names the label that was most likely meant, and those that there are.
    """
    known = list(pools)
    given = where.topology_level
    if not given or any(_is_carried(given, pool) for pool in known):
        return None
    near = _nearest(given, known)
    there = ", ".join(_levels(known)) or "none: no label describes the fabric"
    meant = f"; did you mean {near}?" if near else ";"
    told = sentence(given, LABEL_LIMIT)
    return (
        f"spec.placement.topology.level: no node of any pool has the label {told}{meant}"
        f" levels there are: {there}"
    )


def shared_domain(names: Collection[str], pool: Pool, levels: Iterable[str]) -> dict[str, str]:
    """The nearest of these labels whose value all nodes of these names share; empty: none."""
    labels = [node.labels for node in pool.nodes if node.name in names]
    for level in levels:
        values = {each.get(level) for each in labels}
        if len(values) == 1 and (value := values.pop()):
            return {level: value}
    return {}


def can_ever_hold(level: str, gang: Gang, pool: Pool) -> bool:
    """Whether a domain of the level would take the gang if all its nodes were usable and free."""
    takers: Counter[str] = Counter(
        value for node in pool.nodes if (value := node.labels.get(level)) and _takes_pod(node, gang)
    )
    return max(takers.values(), default=0) >= gang.pods


def _auto(levels: tuple[str, ...], gang: Gang, pool: Pool, share: float) -> Wish:
    outside = " that share no accelerator link" if pool.link_level else ""
    told = f"communication takes {percent(share)} of a step between nodes{outside}"
    if share < LITTLE:
        return Wish((), False, f"nodes anywhere: {told}", share)
    if share >= DOMINANT:
        holding = next((key for key in levels if can_ever_hold(key, gang, pool)), None)
        if holding is not None:
            return Wish((holding,), True, f"all nodes in one domain of {holding}: {told}", share)
    return Wish(levels, False, f"nodes as close as there is room: {told}", share)


def _levels(pools: Sequence[Pool]) -> list[str]:
    """Labels of the fabric that nodes carry. One that a pool's spec lists and no node has helps
    nobody: it may be the very one that was given."""
    listed = dict.fromkeys(key for pool in pools for key in pool.topology_keys)
    return [key for key in listed if any(_is_carried(key, pool) for pool in pools)]


def _nearest(level: str, pools: Sequence[Pool]) -> str | None:
    """The label that was most likely meant, levels of the fabric before all others."""
    levels = _levels(pools)
    labels = {key for pool in pools for node in pool.nodes for key in node.labels}
    near = difflib.get_close_matches(level, [*levels, *sorted(labels - set(levels))], n=1)
    return near[0] if near else None


def _without_level(where: Where, pool: Pool) -> Wish:
    """A level that no node of the pool has: whoever insists on it never runs here."""
    told = sentence(where.topology_level, LABEL_LIMIT)
    if where.topology is Topology.REQUIRED:
        return Wish((where.topology_level,), True, f"no node here has the label {told}")
    near = _nearest(where.topology_level, [pool])
    meant = f"; did you mean {near}?" if near else ""
    return Wish(reason=f"nodes anywhere: none here has the label {told}{meant}")


def _is_carried(level: str, pool: Pool) -> bool:
    return any(node.labels.get(level) for node in pool.nodes)


def _takes_pod(node: Node, gang: Gang) -> bool:
    return (
        node.accelerators >= gang.accelerators
        and node.cores >= gang.cores
        and node.memory_bytes >= gang.memory_bytes
        and bool(pods_in(node.others, gang.others, 1))
    )


def _named(levels: tuple[str, ...]) -> str:
    return levels[0] if levels else "the fabric, which no label describes"
