"""Parallel sizes that a person fixes, and how they must agree with the model and the count."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule, divides


class TrainingParallelism(ApiModel):
    """What is given is kept, the rest is chosen."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.expert) || !has(self.data) || {divides('self.expert', 'self.data')}",
            "must divide data (%d), is %d",
            ("self.data", "self.expert"),
            ".expert",
        ),
    )

    data: int | None = Field(None, ge=1, le=65_536)
    """Data-parallel ranks. Example: `4`."""
    tensor: int | None = Field(None, ge=1, le=1024)
    """Accelerators that share each layer. Example: `8`."""
    pipeline: int | None = Field(None, ge=1, le=1024)
    """Stages of consecutive layers. Example: `2`."""
    expert: int | None = Field(None, ge=1, le=4096)
    """Data-parallel ranks that share the experts; divides `data`. Example: `4`."""
    context: int | None = Field(None, ge=1, le=1024)
    """Accelerators that share each sequence. Example: `1`."""
    zero_stage: int | None = Field(None, ge=0, le=3)
    """What data-parallel ranks shard: 0 nothing, 1 optimizer, 2 gradients too, 3 weights too.
    Example: `1`."""


class ServingParallelism(ApiModel):
    """What is given is kept, the rest is chosen."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.expert) || !has(self.tensor) || {divides('self.expert', 'self.tensor')}",
            "must divide tensor (%d), is %d",
            ("self.tensor", "self.expert"),
            ".expert",
        ),
    )

    tensor: int | None = Field(None, ge=1, le=1024)
    """Accelerators that share each layer. Example: `2`."""
    pipeline: int | None = Field(None, ge=1, le=1024)
    """Stages of consecutive layers. Example: `1`."""
    expert: int | None = Field(None, ge=1, le=1024)
    """Accelerators of one replica that share the experts; divides `tensor` and the model's experts;
    with vllm 1 or `tensor`. Example: `2`."""


_PRODUCT = "data x tensor x pipeline x context"


def _product(parallelism: str, *names: str) -> str:
    """CEL of the product of those sizes that are given."""
    sizes = (f"(has({parallelism}.{name}) ? {parallelism}.{name} : 1)" for name in names)
    return " * ".join(sizes)


def _all_given(parallelism: str, *names: str) -> str:
    return " && ".join(f"has({parallelism}.{name})" for name in names)


_SIZES = "self.training.parallelism"
_GANG = ("data", "tensor", "pipeline", "context")
_GIVEN = _product(_SIZES, *_GANG)
_COMPLETE = _all_given(_SIZES, *_GANG)
_COUNT = "self.accelerators.count"
_BESIDES_DATA = _product(_SIZES, "tensor", "pipeline", "context", "expert")

TRAINING_RULES: tuple[Rule, ...] = (
    Rule(
        f"!has({_SIZES}) || !has({_COUNT}) || !({_COMPLETE}) || {_GIVEN} == {_COUNT}",
        f"{_PRODUCT} must be accelerators.count (%d), is %d",
        (_COUNT, _GIVEN),
        ".training.parallelism",
    ),
    Rule(
        f"!has({_SIZES}) || !has({_COUNT}) || ({_COMPLETE}) || {divides(_GIVEN, _COUNT)}",
        f"{_PRODUCT}, as far as given, must divide accelerators.count (%d), is %d",
        (_COUNT, _GIVEN),
        ".training.parallelism",
    ),
    Rule(
        f"!has({_SIZES}) || !has(self.accelerators.max) || {_GIVEN} <= self.accelerators.max",
        f"{_PRODUCT}, as far as given, must be at most accelerators.max (%d), is %d",
        ("self.accelerators.max", _GIVEN),
        ".training.parallelism",
    ),
    Rule(
        f"!has({_SIZES}) || !has(self.accelerators.min) || !({_COMPLETE})"
        f" || {_GIVEN} >= self.accelerators.min",
        f"{_PRODUCT} must be at least accelerators.min (%d), is %d",
        ("self.accelerators.min", _GIVEN),
        ".training.parallelism",
    ),
    Rule(
        f"!has({_SIZES}) || !has({_COUNT}) || !has({_SIZES}.expert) || has({_SIZES}.data)"
        f" || {divides(_BESIDES_DATA, _COUNT)}",
        "must divide data, so tensor x pipeline x context x expert, as far as given, must divide"
        " accelerators.count (%d), is %d",
        (_COUNT, _BESIDES_DATA),
        ".training.parallelism.expert",
    ),
)


def fits_transformer(parallelism: str, field: str) -> tuple[Rule, ...]:
    """Sizes that the shape of ``model.transformer`` allows, for the block at ``parallelism``."""
    shape = "self.model.transformer"
    known = f"has({shape}) && has({parallelism})"
    ranks, stages, sharers = (f"{parallelism}.{name}" for name in ("tensor", "pipeline", "expert"))
    return (
        Rule(
            f"!({known} && has({ranks})) || {divides(ranks, f'{shape}.heads')}",
            "must divide model.transformer.heads (%d), is %d",
            (f"{shape}.heads", ranks),
            f"{field}.tensor",
        ),
        Rule(
            f"!({known} && has({stages})) || {stages} <= {shape}.layers",
            "must be at most model.transformer.layers (%d), is %d",
            (f"{shape}.layers", stages),
            f"{field}.pipeline",
        ),
        Rule(
            f"!({known} && has({sharers})) || {sharers} == 1"
            f" || (has({shape}.experts) && {divides(sharers, f'{shape}.experts.count')})",
            "must divide model.transformer.experts.count (%d), is %d",
            (f"has({shape}.experts) ? {shape}.experts.count : 1", sharers),
            f"{field}.expert",
        ),
    )


_REPLICA = ("tensor", "pipeline")
_REPLICA_GIVEN = _product("self.parallelism", *_REPLICA)
_REPLICA_COMPLETE = _all_given("self.parallelism", *_REPLICA)
_PER_REPLICA = "self.accelerators.perReplica"
_REPLICA_KNOWN = f"has(self.parallelism) && has(self.accelerators) && has({_PER_REPLICA})"

SERVING_RULES: tuple[Rule, ...] = (
    Rule(
        f"!({_REPLICA_KNOWN}) || !({_REPLICA_COMPLETE}) || {_REPLICA_GIVEN} == {_PER_REPLICA}",
        "tensor x pipeline must be accelerators.perReplica (%d), is %d",
        (_PER_REPLICA, _REPLICA_GIVEN),
        ".parallelism",
    ),
    Rule(
        f"!({_REPLICA_KNOWN}) || ({_REPLICA_COMPLETE}) || {divides(_REPLICA_GIVEN, _PER_REPLICA)}",
        "tensor x pipeline, as far as given, must divide accelerators.perReplica (%d), is %d",
        (_PER_REPLICA, _REPLICA_GIVEN),
        ".parallelism",
    ),
    *fits_transformer("self.parallelism", ".parallelism"),
)
TRAINING_RULES += fits_transformer(_SIZES, ".training.parallelism")
