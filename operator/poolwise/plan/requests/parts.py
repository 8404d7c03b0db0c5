"""Whether a model has the parts that a run's ``parallelism`` divides: no pool would help else."""

from __future__ import annotations

from poolwise.errors import InvalidInput
from poolwise.model.shapes import Model, Transformer
from poolwise.plan.requests.request import FixedLayout

SIZES = "spec.training.parallelism"


def check_parts(model: Model, fixed: FixedLayout) -> None:
    """Raises InvalidInput for a size that the model rules out."""
    shape, name = model.shape, model.name
    if not isinstance(shape, Transformer):
        for field in ("tensor", "pipeline", "context", "expert"):
            size = getattr(fixed, field) or 1
            _check(field, size == 1, f"must be 1, since {name} is no transformer", size)
        return
    tensor, pipeline, expert = fixed.tensor or 1, fixed.pipeline or 1, fixed.expert or 1
    divides = f"must divide the {shape.heads} heads of {name}"
    _check("tensor", shape.heads % tensor == 0, divides, tensor)
    keys = f"must divide or be a multiple of the {shape.kv_heads} key-value heads of {name}"
    _check("tensor", shape.divides_heads(tensor), keys, tensor)
    layers = f"must be at most the {shape.layers} layers of {name}"
    _check("pipeline", pipeline <= shape.layers, layers, pipeline)
    experts = shape.experts.count if shape.experts else 0
    _check("expert", expert == 1 or experts > 0, f"must be 1, since {name} has no experts", expert)
    _check("expert", experts % expert == 0, f"must divide the {experts} experts of {name}", expert)


def _check(field: str, is_kept: bool, rule: str, given: int) -> None:
    if not is_kept:
        raise InvalidInput(f"{SIZES}.{field}", f"{rule}, is {given}")
