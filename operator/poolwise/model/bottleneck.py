"""Which resource holds a workload back: the one that, grown by a tenth, gains it the most."""

from __future__ import annotations

from collections.abc import Callable

from poolwise.model.hardware import Machine, Resource
from poolwise.model.prediction import Bottleneck

GROWTH = 1.1
LEAST_GAIN = 0.005
"""Below this gain no resource counts as a bottleneck: fixed costs are."""

BUYABLE: tuple[Resource, ...] = tuple(
    resource for resource in Resource if resource is not Resource.LATENCY
)


def bottleneck(throughput: Callable[[Machine], float], machine: Machine) -> Bottleneck:
    """Label and gains of a throughput that may depend on anything of the machine.

    ``throughput`` is asked once for the machine as it is, and once with each resource grown by
    10 %; a throughput of 0 has no gains and is ``Latency``.
    """
    base = throughput(machine)
    if base <= 0:
        return Bottleneck(Resource.LATENCY, dict.fromkeys(BUYABLE, 0.0))
    gains = {each: throughput(machine.with_more(each, GROWTH)) / base - 1 for each in BUYABLE}
    largest = max(gains, key=lambda each: gains[each])
    if gains[largest] < LEAST_GAIN:
        largest = Resource.LATENCY
    return Bottleneck(largest, gains)
