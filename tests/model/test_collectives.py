from __future__ import annotations

import pytest

from poolwise.model.collectives import (
    Group,
    Implementation,
    Links,
    Operation,
    collective_seconds,
    group,
    low_confidence_reason,
    predict_collective,
    wire_factor,
)
from poolwise.model.hardware import Resource
from poolwise.model.links import Link, growth, sums_in_switch
from poolwise.model.prediction import Interval
from tests.model.training_cases import CALIBRATION, cpu_machine, machine

GB = 1e9


def bus_bytes_per_second(name: str, ranks: Group, size: float, network: float = 400e9) -> float:
    """As nccl-tests prints it."""
    here = machine(name, network)
    seconds = collective_seconds(Operation.ALL_REDUCE, size, ranks, here, CALIBRATION)
    return size * wire_factor(Operation.ALL_REDUCE, ranks.ranks) / seconds


@pytest.mark.parametrize(
    ("name", "ranks", "measured"),
    [
        pytest.param("L40S", 2, 19e9, id="L40S 2"),
        pytest.param("L40S", 4, 5e9, id="L40S 4"),
        pytest.param("L40S", 8, 1.7e9, id="L40S 8"),
        pytest.param("A100-SXM4-80GB", 8, 222e9, id="A100 8"),
        pytest.param("H100-SXM5-80GB", 8, 445e9, id="H100 8"),
        pytest.param("H200-SXM-141GB", 8, 460e9, id="H200 8"),
        pytest.param("GB200-NVL72", 4, 628e9, id="GB200 4"),
        pytest.param("MI300X", 2, 47.7e9, id="MI300X 2, one link of the mesh"),
        pytest.param("MI300X", 8, 313e9, id="MI300X 8, all links"),
    ],
)
def test_large_all_reduces_meet_measured_bandwidth(name: str, ranks: int, measured: float) -> None:
    reached = bus_bytes_per_second(name, Group(ranks, ranks), 537e6 if ranks > 2 else 4.3e9)
    assert reached == pytest.approx(measured, rel=0.35 if name == "L40S" else 0.25)


def test_four_nodes_of_b200_meet_measured_bandwidth() -> None:
    reached = bus_bytes_per_second("B200-SXM-180GB", Group(32, 8), 17.2e9)
    assert reached == pytest.approx(376.7e9, rel=0.2)


def test_small_all_reduces_are_latency() -> None:
    h100 = machine("H100-SXM5-80GB")
    eight = Group(8, 8)
    library = collective_seconds(Operation.ALL_REDUCE, 512, eight, h100, CALIBRATION)
    graph = collective_seconds(
        Operation.ALL_REDUCE, 512, eight, h100, CALIBRATION, Implementation.GRAPH
    )
    assert library == pytest.approx(15.6e-6, rel=0.15)
    assert graph == pytest.approx(4.7e-6, rel=0.3)


def test_a_group_of_one_needs_no_time() -> None:
    here = machine("H100-SXM5-80GB")
    assert collective_seconds(Operation.ALL_GATHER, 1e9, Group(1, 1), here, CALIBRATION) == 0.0


@pytest.mark.parametrize("operation", list(Operation))
@pytest.mark.parametrize("ranks", [Group(8, 8), Group(16, 8), Group(8, 1)], ids=str)
@pytest.mark.parametrize("name", ["H100-SXM5-80GB", "L40S", "MI300X", "TPU v5e"])
def test_more_bytes_take_longer_and_faster_links_do_not(
    name: str, ranks: Group, operation: Operation
) -> None:
    here = machine(name)
    faster = here.with_more(Resource.INTERCONNECT, 1.1)
    times = [
        collective_seconds(operation, size, ranks, here, CALIBRATION) for size in (1e3, 1e6, 1e9)
    ]
    assert times == sorted(times)
    assert collective_seconds(operation, 1e9, ranks, faster, CALIBRATION) < times[-1]


def test_neighbours_fill_a_domain_before_they_leave_it() -> None:
    link = machine("H100-SXM5-80GB").interconnect
    assert group(8, 1, link) == Group(8, 8)
    assert group(16, 1, link) == Group(16, 8)
    assert group(16, 4, link) == Group(16, 2)
    assert group(16, 8, link) == Group(16, 1)
    assert group(64, 1, machine("GB200-NVL72").interconnect) == Group(64, 64)


def test_who_does_not_fill_a_second_domain_leaves_the_first_all_the_same() -> None:
    assert [Group(ranks, 8).domains for ranks in (1, 8, 9, 12, 16, 17)] == [1, 1, 2, 2, 2, 3]
    within, beyond = (
        collective_seconds(
            Operation.ALL_REDUCE, 1e9, Group(ranks, 8), machine("H100-SXM5-80GB", 1e9), CALIBRATION
        )
        for ranks in (8, 12)
    )
    assert beyond > 10 * within, "over cards of 1 GB/s a node"


def test_devices_of_a_node_share_its_network_cards() -> None:
    """Eight groups of one rank a node, an eighth of the bytes each, cross like one group of all."""
    here = machine("H100-SXM5-80GB", network_bytes_per_second=100e9)
    whole = collective_seconds(Operation.ALL_REDUCE, 8e9, Group(16, 8), here, CALIBRATION)
    eighth = collective_seconds(Operation.ALL_REDUCE, 1e9, Group(2, 1), here, CALIBRATION)
    assert eighth == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize(
    ("stages", "stride", "leaving"),
    [(2, 4, 0), (4, 4, 1), (16, 4, 7), (2, 8, 1), (4, 8, 3), (3, 6, 2), (8, 1, 0)],
)
def test_a_chain_leaves_its_node_as_often_as_it_is_longer(
    stages: int, stride: int, leaving: int
) -> None:
    """Over a network of 1 MB/s a node, which alone counts."""
    links = Links(machine("H100-SXM5-80GB", network_bytes_per_second=1e6), CALIBRATION)
    one, once = (links.hop_seconds(1e9, *chain) for chain in ((stages, stride), (2, 8)))
    assert one * (stages - 1) == pytest.approx(leaving * once, rel=1e-3, abs=1.0)


def test_nodes_without_accelerators_talk_over_the_network() -> None:
    seconds = collective_seconds(Operation.ALL_REDUCE, 1e9, Group(2, 1), cpu_machine(), CALIBRATION)
    assert seconds > 1e9 / 10e9


def reduced(name: str, ranks: int, size: float, implementation: Implementation) -> float:
    """Seconds of an all-reduce inside a domain."""
    return collective_seconds(
        Operation.ALL_REDUCE,
        size,
        Group(ranks, ranks),
        machine(name),
        CALIBRATION,
        implementation,
    )


def test_an_implementation_nobody_measured_is_taken_for_the_library() -> None:
    assert reduced("L40S", 4, 1e6, Implementation.TRTLLM) == reduced(
        "L40S", 4, 1e6, Implementation.NCCL
    )


@pytest.mark.parametrize(
    ("host", "launched"),
    [
        pytest.param(Implementation.EAGER, Implementation.GRAPH, id="eager"),
        pytest.param(Implementation.TORCH, Implementation.NCCL, id="torch"),
    ],
)
def test_a_host_that_launches_hides_only_what_is_shorter(
    host: Implementation, launched: Implementation
) -> None:
    small, large = (reduced("H100-SXM5-80GB", 8, size, host) for size in (1e3, 1e9))
    assert small > 15e-6
    assert small > 1.2 * reduced("H100-SXM5-80GB", 8, 1e3, launched)
    assert large == pytest.approx(reduced("H100-SXM5-80GB", 8, 1e9, launched), rel=0.01)


def test_a_switch_that_adds_beats_its_own_link() -> None:
    """H100: 445 to 480 GB/s of bus bandwidth over a link of 450 (NVLS); A100 cannot."""
    hopper = bus_bytes_per_second("H100-SXM5-80GB", Group(8, 8), 8e9) / 450e9
    ampere = bus_bytes_per_second("A100-SXM4-80GB", Group(8, 8), 8e9) / 300e9
    assert hopper > 0.9
    assert ampere < 0.85


def test_a_switch_that_adds_is_no_help_to_a_pair() -> None:
    """Each sends the other its half and gets the sum back: the bytes are the same both ways."""
    adds = [sums_in_switch(Operation.ALL_REDUCE, ranks, is_switched=True) for ranks in (2, 3, 8)]
    assert adds == [False, True, True]
    assert not sums_in_switch(Operation.ALL_REDUCE, 8, is_switched=False)
    assert not sums_in_switch(Operation.ALL_GATHER, 8, is_switched=True)


def test_pcie_says_that_it_deserves_little_trust() -> None:
    eight = Group(8, 8)

    def asked(name: str) -> Interval:
        return predict_collective(Operation.ALL_REDUCE, 1e6, eight, machine(name), CALIBRATION)

    def told(name: str, ranks: Group = eight) -> str | None:
        return low_confidence_reason(ranks, machine(name).interconnect)

    known, unknown, switched = asked("L40S"), asked("L20"), asked("H100-SXM5-80GB")
    assert told("H100-SXM5-80GB") is None
    assert "PCIe" in (told("L40S") or "")
    assert "PCIe" in (told("L20") or "")
    assert switched.spread < known.spread < unknown.spread
    assert unknown.high > 4 * unknown.mid
    assert told("L40S", Group(8, 1)) is None


def test_a_link_of_specifications_alone_is_less_sure_than_a_measured_one() -> None:
    eight = Group(8, 8)
    new, known = (
        predict_collective(Operation.ALL_REDUCE, 1e6, eight, machine(name), CALIBRATION)
        for name in ("H20-96GB", "H100-SXM5-80GB")
    )
    assert new.spread > known.spread


@pytest.mark.parametrize(
    ("size_bytes", "expected_seconds"),
    [
        pytest.param(100e6, 100e6 / 100e9, id="bytes outlast the launch"),
        pytest.param(1.0, 10e-6, id="the launch outlasts bytes"),
    ],
)
def test_of_host_and_link_the_slower_is_what_it_takes(
    size_bytes: float, expected_seconds: float
) -> None:
    """They go on side by side, and are not added up."""
    link = Link(0.0, 0.0, 0.0, bytes_per_second=100e9, host_seconds=10e-6)
    found = link.seconds(Operation.SEND_RECEIVE, size_bytes, 2)
    assert found == pytest.approx(expected_seconds, rel=0.005)


def test_bandwidth_grows_with_doublings_as_far_as_somebody_measured() -> None:
    assert growth(1.1, 2) == 1.0
    assert growth(1.1, 4) == pytest.approx(1.1)
    assert growth(1.1, 8) == pytest.approx(1.1**2)
    assert growth(1.1, 64) == growth(1.1, 8)
