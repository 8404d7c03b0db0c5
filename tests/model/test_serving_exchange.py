"""What the devices of one replica send each other in a step, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model.collectives import Operation, collective_seconds, group
from poolwise.model.serving.exchange import all_reduce, exchange_row_seconds, stage_seconds
from poolwise.model.serving.memory import ACTIVATION_BYTES
from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout
from tests.model.serving_cases import CALIBRATION, machine, model

H100, B200 = machine("H100-SXM5-80GB"), machine("B200-SXM-180GB")


def shape_of(name: str) -> Transformer:
    shape = model(name).shape
    assert isinstance(shape, Transformer)
    return shape


LLAMA, DEEPSEEK = shape_of("Llama-3.1-70B"), shape_of("DeepSeek-V3")


def test_experts_on_more_devices_than_a_domain_has_are_reached_over_the_network() -> None:
    """Though none of the groups of one device crosses anything by itself."""
    within, across = (
        exchange_row_seconds(DEEPSEEK, ServingLayout(data=ranks, expert=ranks), B200, CALIBRATION)
        for ranks in (8, 16)
    )
    links = B200.interconnect
    slower = links.intra_node_bytes_per_second / links.inter_node_bytes_per_second
    more_away = (15 / 16) / (7 / 8)
    assert across / within == pytest.approx(slower * more_away)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_batch_is_handed_over_between_stages_once_less_than_there_are(stages: int) -> None:
    """Of 128 sequences for each stage."""
    layout = ServingLayout(tensor=8, pipeline=stages, max_num_seqs=128 * stages)
    found_seconds = stage_seconds(LLAMA, layout, H100, CALIBRATION)
    size_bytes = LLAMA.hidden * ACTIVATION_BYTES * 128
    ranks = group(2, 8, H100.interconnect)
    once_seconds = collective_seconds(Operation.SEND_RECEIVE, size_bytes, ranks, H100, CALIBRATION)
    assert found_seconds == pytest.approx((stages - 1) * once_seconds)


def test_a_chain_of_short_stages_crosses_between_nodes_too() -> None:
    """Four stages of four devices lie on two nodes; four of two are on one."""
    slow = replace(H100, interconnect=replace(H100.interconnect, inter_node_bytes_per_second=1e6))
    within, beyond = (
        stage_seconds(LLAMA, ServingLayout(tensor=each, pipeline=4), slow, CALIBRATION)
        for each in (2, 4)
    )
    assert within < 1.0 < beyond


@pytest.mark.parametrize("rows", [0.0, 256.0, 4096.0])
def test_beyond_a_node_it_takes_what_the_library_takes_at_three_sizes(rows: float) -> None:
    curve = all_reduce(LLAMA, ServingLayout(tensor=16), H100, CALIBRATION)
    size_bytes = rows * LLAMA.hidden * ACTIVATION_BYTES
    ranks = group(16, 1, H100.interconnect)
    library_seconds = collective_seconds(Operation.ALL_REDUCE, size_bytes, ranks, H100, CALIBRATION)
    assert curve.seconds(rows) == pytest.approx(library_seconds)
