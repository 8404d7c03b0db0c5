"""Replicas that span nodes: for a model that no node of a pool holds.

A replica then takes whole nodes. Its pipeline has a stage, or several, on each node; or its
tensor-parallel group reaches over all of them. The model of the links tells which serves more:
over a network pipelines win almost always, within one NVLink domain tensor groups do. It is started
as a group of pods by LeaderWorkerSet, so it is offered only where that is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout
from poolwise.plan.children.engines import ENGINES
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity import Gang, Ledger, packs
from poolwise.plan.pool import Pool
from poolwise.plan.records.runtimes import Runtime, is_served
from poolwise.plan.requests.request import FixedReplica, ServingRequest, Topology
from poolwise.plan.wording import plural

NODE_COUNTS = (2, 3, 4, 6, 8, 12, 16)
"""Nodes of one replica that are tried; engines divide layers unevenly where they must."""
_NOBODY = Key(Kind.INFERENCE_SERVICE, "", "")
LARGER = 2
"""Times the fewest nodes that hold a model: beyond, more replicas serve better than larger ones."""


def gang_of_replicas(
    replicas: int,
    layout: ServingLayout,
    request: ServingRequest,
    pool: Pool,
    nodes: int | None = None,
) -> Gang:
    """Pods of a service: one per replica and node; on CPU each asks for its cores and memory.

    :param nodes: that each replica spans, of what runs: a pool without nodes does not tell.
    """
    nodes = nodes or pool.nodes_of(layout.count)
    return Gang(
        pods=replicas * nodes,
        accelerators=layout.count // nodes,
        cores=layout.cpu_cores or request.pod.cores,
        memory_bytes=layout.cpu_memory_bytes or request.pod.memory_bytes,
        one_per_node=nodes > 1,
        packs=nodes == 1 and packs(layout.count, request.redundancy),
        group=nodes,
        others=request.pod.others,
    )


def wish_of_replicas(
    replicas: int, layout: ServingLayout, request: ServingRequest, pool: Pool
) -> Wish:
    """How close to each other the nodes of each replica are to be.

    Only a lone replica insists: several need not share a domain with each other, and the scheduler
    keeps the pods of each together.
    """
    where = request.where
    if pool.nodes_of(layout.count) == 1:
        return ANYWHERE
    levels = (where.topology_level,) if where.topology_level else pool.topology_keys
    must_share = where.topology is Topology.REQUIRED
    if leaves_its_node(layout, pool) and pool.link_level:
        levels, must_share = (pool.link_level,), True
    elif where.topology is Topology.UNCONSTRAINED or not levels:
        return ANYWHERE
    told = f"nodes of a replica as close as there is room: {' or '.join(levels)} first"
    return Wish(levels, must_share and replicas == 1, told)


def group_by_group(ledger: Ledger, pool: Pool, gang: Gang, wish: Wish) -> dict[str, int] | None:
    """Nodes for each group as close together as there is room, one group after the other."""
    one, chosen = replace(gang, pods=gang.group), dict[str, int]()
    for _ in range(gang.pods // gang.group):
        nodes = ledger.fit(pool, one, wish.levels, must_share=wish.must_share)
        if nodes is None:
            return None
        chosen |= nodes
        ledger = ledger.with_claim(one.claim(_NOBODY, pool.name, nodes))
    return chosen


def leaves_its_node(layout: ServingLayout, pool: Pool) -> bool:
    """Whether a tensor-parallel group is larger than a node."""
    return layout.tensor > pool.accelerators_per_node


def why_not_over_nodes(request: ServingRequest, apis: Mapping[str, str]) -> str | None:
    """What is missing for replicas over several nodes, as a clause; None: nothing is."""
    engine = ENGINES.get(request.work.engine)
    if engine is None or not engine.node_flags:
        able = " and ".join(sorted(name for name, each in ENGINES.items() if each.node_flags))
        return f"engine {request.work.engine} starts on one node ({able} start on several)"
    if not is_served(Runtime.LEADER_WORKER_SET, apis):
        return "LeaderWorkerSet, which starts such replicas, is not installed"
    return None


def remark(nodes: int, pool: Pool, problem: str) -> str:
    """For a pool whose nodes are each too small: what would make it possible.

    Where the pool has too few of them, nothing else is told: what else is missing would not help.
    """
    told = f"; {plural(nodes, 'node')} together would hold a replica, but"
    most = max(len(pool.usable_nodes), pool.max_nodes or 0)
    return f"{told} the pool has {most:,}" if most < nodes else f"{told} {problem}"


def sizes_over_nodes(
    shape: object, fixed: FixedReplica, accelerators_per_node: int, widest: int, weights: str
) -> Iterator[ServingLayout]:
    """Layouts over whole nodes, the fewest first; ``widest`` is the largest tensor-parallel size
    that divides the model within a node."""
    if not isinstance(shape, Transformer):
        return
    for nodes in NODE_COUNTS:
        count = nodes * accelerators_per_node
        if fixed.accelerators not in (None, count):
            continue
        for tensor in _tensors(fixed, count, widest):
            layout = ServingLayout(tensor, count // tensor, fixed.expert or 1, weights)
            if layout.count == count and _divides(shape, fixed, layout, accelerators_per_node):
                yield layout


def nearest(layouts: list[ServingLayout]) -> list[ServingLayout]:
    """Those on few more nodes than the fewest."""
    fewest = min((layout.count for layout in layouts), default=0)
    return [layout for layout in layouts if layout.count <= LARGER * fewest]


def _tensors(fixed: FixedReplica, count: int, widest: int) -> Iterator[int]:
    if fixed.tensor is not None:
        yield fixed.tensor
    elif fixed.pipeline is not None:
        yield max(1, count // fixed.pipeline)
    else:
        yield from dict.fromkeys((widest, count))


def _divides(
    shape: Transformer, fixed: FixedReplica, layout: ServingLayout, accelerators_per_node: int
) -> bool:
    """Whether heads, layers and experts divide, and no tensor group takes a part of a node."""
    tensor, pipeline = layout.tensor, layout.pipeline
    larger, smaller = max(tensor, accelerators_per_node), min(tensor, accelerators_per_node)
    is_whole = larger % smaller == 0
    is_wished = fixed.pipeline in (None, pipeline) and tensor % layout.expert == 0
    is_divided = shape.divides_heads(tensor) and pipeline <= shape.layers
    return is_divided and is_whole and is_wished
