"""What a placement costs and uses in an hour, at the prices and powers of now."""

from __future__ import annotations

from poolwise.model.work import ServingLayout
from poolwise.plan.decision import Candidate, PlacementRecord
from poolwise.plan.pool import Pool
from poolwise.plan.reading import Told, number
from poolwise.plan.records.meter import JOULES_PER_KILOWATT_HOUR

WATTS_PER_KILOWATT = 1000.0


def cost_per_hour(pool: Pool, chosen: Candidate | PlacementRecord) -> float | None:
    """Of what a workload holds at the pool's price; None where nobody knows it."""
    return pool.price.per_node_hour * _nodes_held(pool, chosen) if pool.price else None


def comparable_cost(pool: Pool, chosen: Candidate) -> float | None:
    """The same, where it is in the operator's currency."""
    return None if pool.price_problem is not None else cost_per_hour(pool, chosen)


def _nodes_held(pool: Pool, chosen: Candidate | PlacementRecord) -> float:
    """Nodes whose price a workload pays: its share of their accelerators, or of their cores."""
    layout = chosen.layout
    if pool.is_cpu and isinstance(layout, ServingLayout):
        cores = max((node.cores for node in pool.nodes), default=0.0)
        return layout.cpu_cores * replicas_of(chosen) / cores if cores else 0.0
    return chosen.count * replicas_of(chosen) / max(pool.accelerators_per_node, 1)


def kilowatts(chosen: Candidate, told: Told) -> float | None:
    """Predicted for what this holds, each accelerator as ``told``; of a CPU replica as a whole."""
    watts = number(told, "powerWatts")
    devices = max(chosen.count, 1) * replicas_of(chosen)
    return None if watts is None else watts * devices / WATTS_PER_KILOWATT


def joules_per_hour(chosen: Candidate, told: Told) -> float | None:
    """The same, as a plan tells the energy of a service."""
    power_kilowatts = kilowatts(chosen, told)
    return None if power_kilowatts is None else power_kilowatts * JOULES_PER_KILOWATT_HOUR


def replicas_of(chosen: Candidate | PlacementRecord) -> int:
    """Of a service; a run is one."""
    return 1 if chosen.replicas is None else chosen.replicas
