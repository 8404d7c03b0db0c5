"""The parallel layout of a row of ``train_measured``, as stated and where nothing is stated.

Normalised here: Trainium's parallel sizes (counted in cores, two a chip), sizes that ask for more
devices than there were, and the names of sharding and recomputation.
"""

from __future__ import annotations

import re

from bench.tables import Row, whole
from poolwise.model.work import Recompute, TrainingLayout
from poolwise.plan.requests.request import FixedLayout

SHARDING = {
    "full_shard": 3,
    "hybrid_shard": 3,
    "fsdp": 3,
    "fsdp2": 3,
    "hsdp": 3,
    "shard_grad_op": 2,
    "no_shard": 0,
    "ddp": 0,
    "none": 0,
}
"""PyTorch's words; others shard the optimizer alone, unless they tell their stage of ZeRO."""
_STAGE = re.compile("zero-?([0-3])")
RECOMPUTE = {
    "none": Recompute.NONE,
    "full": Recompute.FULL,
    "selective op": Recompute.SELECTIVE,
    "selective": Recompute.SELECTIVE,
}


def stated_layout(row: Row, count: int, batch: int) -> tuple[FixedLayout, int]:
    """What the source says of the layout, and the virtual stages."""
    tensor, pipeline, context = (whole(row, name) for name in ("tp", "pp", "cp"))
    if tensor is not None and row["gpu"].startswith("Trainium"):
        tensor = max(1, tensor // 2)
    if tensor and pipeline:
        context = context or 1
        tensor, pipeline = _dividing(count, tensor, pipeline, context)
    micro = whole(row, "micro_batch")
    if micro and pipeline and pipeline > 1 and row["framework"] == "torchtitan":
        micro = max(1, micro // pipeline)  # its local batch is what one step of a rank takes
    return (
        FixedLayout(
            tensor=tensor,
            pipeline=pipeline,
            context=context,
            expert=whole(row, "ep"),
            zero_stage=_zero_stage(row, pipeline),
            micro_batch_size=min(micro, batch) if micro else None,
            recompute=RECOMPUTE.get(row["act_ckpt"]),
        ),
        whole(row, "vp") or 1,
    )


def _dividing(count: int, tensor: int, pipeline: int, context: int) -> tuple[int, int]:
    """Sizes as published, cut back where they ask for more devices than there were."""
    pipeline = max(1, min(pipeline, count // (tensor * context)))
    return tensor, pipeline


def _zero_stage(row: Row, pipeline: int | None) -> int | None:
    if not row["sharding"]:
        return None
    told = _STAGE.search(row["sharding"])
    stage = int(told[1]) if told else SHARDING.get(row["sharding"], 1)
    return min(stage, 1) if pipeline and pipeline > 1 else stage


def whole_layout(
    fixed: FixedLayout, interleave: int, count: int, batch_samples: int
) -> TrainingLayout | None:
    """Over all devices, where the source states every parallel size; else None."""
    if not (fixed.tensor and fixed.pipeline and fixed.context):
        return None
    data = max(1, count // (fixed.tensor * fixed.pipeline * fixed.context))
    return TrainingLayout(
        data=data,
        tensor=fixed.tensor,
        pipeline=fixed.pipeline,
        expert=min(fixed.expert or 1, data * fixed.context * fixed.tensor),
        context=fixed.context,
        zero_stage=fixed.zero_stage if fixed.zero_stage is not None else 1,
        micro_batch_size=min(fixed.micro_batch_size or 1, max(1, batch_samples // data)),
        recompute=fixed.recompute or Recompute.NONE,
        interleave=interleave if fixed.pipeline > 1 else 1,
    )


def least_layout(fixed: FixedLayout, count: int, batch_samples: int) -> TrainingLayout:
    """Where nothing is said to fit, though it ran (optimizer fused into the backward pass, or kept
    on the host): everything that is not stated sharded and recomputed."""
    tensor, pipeline, context = fixed.tensor or 1, fixed.pipeline or 1, fixed.context or 1
    data = max(1, count // (tensor * pipeline * context))
    return TrainingLayout(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        expert=min(fixed.expert or 1, data * context * tensor),
        context=context,
        zero_stage=3 if pipeline == 1 else 1,
        micro_batch_size=max(1, min(fixed.micro_batch_size or 1, batch_samples)),
        recompute=fixed.recompute or Recompute.FULL,
    )
