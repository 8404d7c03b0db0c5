"""Layouts as the sources of training runs state them."""

from __future__ import annotations

import pytest

from bench.tables import Row
from bench.training_layouts import least_layout, stated_layout, whole_layout
from poolwise.model.work import Recompute
from poolwise.plan.requests.request import FixedLayout

CELLS: Row = {
    "gpu": "H100-SXM5-80GB", "framework": "NeMo", "tp": "4", "pp": "4", "vp": "5", "cp": "2",
    "ep": "NA", "micro_batch": "1", "sharding": "DistOpt(ZeRO-1)", "act_ckpt": "selective op",
}  # fmt: skip


def stated(**cells: str) -> FixedLayout:
    return stated_layout(CELLS | cells, 64, 128)[0]


def test_a_layout_is_read_as_it_is_stated() -> None:
    fixed, interleave = stated_layout(CELLS, 64, 128)
    assert (fixed.tensor, fixed.pipeline, fixed.context, interleave) == (4, 4, 2, 5)
    assert fixed.recompute is Recompute.SELECTIVE
    layout = whole_layout(fixed, interleave, 64, 128)
    assert layout is not None
    assert (layout.count, layout.data, layout.interleave) == (64, 2, 5)


@pytest.mark.parametrize(
    ("cells", "size", "value"),
    [
        pytest.param({"gpu": "Trainium1", "tp": "8"}, "tensor", 4, id="two cores a chip"),
        pytest.param({"pp": "16"}, "pipeline", 8, id="more stages than devices"),
        pytest.param({"framework": "torchtitan", "micro_batch": "8"}, "micro_batch_size", 2,
                     id="a local batch is of all stages"),
        pytest.param({"micro_batch": "512"}, "micro_batch_size", 128, id="no more than the batch"),
        pytest.param({"sharding": "full_shard", "pp": "1"}, "zero_stage", 3, id="fully sharded"),
        pytest.param({"sharding": "full_shard"}, "zero_stage", 1, id="not behind a pipeline"),
        pytest.param({"sharding": "deepspeed zero-3", "pp": "1"}, "zero_stage", 3, id="by stage"),
        pytest.param({"sharding": "hsdp", "pp": "1"}, "zero_stage", 3, id="within a node"),
        pytest.param({"sharding": "ddp", "pp": "1"}, "zero_stage", 0, id="nothing sharded"),
        pytest.param({"sharding": ""}, "zero_stage", None, id="not stated"),
    ],
)  # fmt: skip
def test_sizes_are_normalised(cells: Row, size: str, value: int | None) -> None:
    assert getattr(stated(**cells), size) == value


def test_a_layout_with_a_size_missing_is_left_to_the_search() -> None:
    assert whole_layout(stated(tp=""), 1, 64, 128) is None


def test_the_least_layout_shards_and_recomputes_everything() -> None:
    layout = least_layout(FixedLayout(micro_batch_size=4), 8, 2)
    assert (layout.count, layout.zero_stage, layout.micro_batch_size) == (8, 3, 2)
    assert layout.recompute is Recompute.FULL


def test_the_least_layout_keeps_what_is_stated() -> None:
    fixed = FixedLayout(tensor=4, pipeline=2, expert=8, recompute=Recompute.NONE)
    layout = least_layout(fixed, 64, 128)
    assert (layout.data, layout.tensor, layout.pipeline, layout.expert) == (8, 4, 2, 8)
    assert (layout.zero_stage, layout.recompute) == (1, Recompute.NONE)
