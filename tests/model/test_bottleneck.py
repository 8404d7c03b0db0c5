from __future__ import annotations

import pytest

from poolwise.model.bottleneck import bottleneck
from poolwise.model.hardware import Machine, Resource
from tests.model.training_cases import machine

H100 = machine("H100-SXM5-80GB")


def test_the_largest_gain_names_the_bottleneck() -> None:
    """Three quarters of the time is arithmetic, a quarter is memory."""
    peak = H100.device.peak_flops_per_second["bf16"]
    bandwidth = H100.device.memory_bandwidth_bytes_per_second

    def throughput(here: Machine) -> float:
        compute = 0.75 * peak / here.device.peak_flops_per_second["bf16"]
        memory = 0.25 * bandwidth / here.device.memory_bandwidth_bytes_per_second
        return 1 / (compute + memory)

    found = bottleneck(throughput, H100)
    assert found.resource is Resource.COMPUTE
    assert found.gains[Resource.COMPUTE] == pytest.approx(1 / (1 - 0.75 / 11) - 1)
    assert found.gains[Resource.MEMORY_BANDWIDTH] == pytest.approx(1 / (1 - 0.25 / 11) - 1)
    assert found.gains[Resource.INTERCONNECT] == 0


@pytest.mark.parametrize("resource", [each for each in Resource if each is not Resource.LATENCY])
def test_every_resource_can_be_the_one(resource: Resource) -> None:
    grown = H100.with_more(resource, 1.1)
    found = bottleneck(lambda here: 1.2 if here == grown else 1.0, H100)
    assert found.resource is resource


@pytest.mark.parametrize("gain", [0.0, 0.004])
def test_what_nothing_helps_is_latency(gain: float) -> None:
    found = bottleneck(lambda here: 1.0 if here == H100 else 1 + gain, H100)
    assert found.resource is Resource.LATENCY


def test_more_of_a_resource_never_loses_throughput() -> None:
    """A search for the highest load may end a step lower on a larger machine."""
    found = bottleneck(lambda here: 1.0 if here == H100 else 1.0 - 1e-5, H100)
    assert found.resource is Resource.LATENCY
    assert set(found.gains.values()) == {0.0}


def test_what_cannot_run_has_no_gains() -> None:
    found = bottleneck(lambda here: 0.0, H100)
    assert found.resource is Resource.LATENCY
    assert set(found.gains.values()) == {0.0}
