"""Which resource holds a workload back: the one that, grown by a tenth, gains it the most."""

from __future__ import annotations

from collections.abc import Callable, Collection

from poolwise.model.hardware import Machine, Resource
from poolwise.model.prediction import GROWTH, Bottleneck

LEAST_GAIN = 0.005
"""Below this gain no resource counts as a bottleneck: fixed costs are."""

BUYABLE: tuple[Resource, ...] = tuple(
    resource for resource in Resource if resource is not Resource.LATENCY
)


def bottleneck(
    throughput: Callable[[Machine], float],
    machine: Machine,
    felt: Collection[Resource] = BUYABLE,
) -> Bottleneck:
    """Label and gains of a throughput that may depend on anything of the machine.

    ``throughput`` is asked once for the machine as it is, and once with each of the ``felt``
    resources grown by 10 %: who knows that one cannot matter saves its question. A throughput of
    0 has no gains and is ``Latency``. No resource takes throughput away by growing: what seems to
    is the step of a search for the highest load, or the law of a tail.
    """
    base = throughput(machine)
    gains = dict.fromkeys(BUYABLE, 0.0)
    if base <= 0:
        return Bottleneck(Resource.LATENCY, gains)
    for each in felt:
        gains[each] = max(throughput(machine.with_more(each, GROWTH)) / base - 1, 0.0)
    largest = max(gains, key=lambda each: gains[each])
    if gains[largest] < LEAST_GAIN:
        largest = Resource.LATENCY
    return Bottleneck(largest, gains)
