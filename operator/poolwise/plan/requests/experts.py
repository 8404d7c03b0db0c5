"""Whether a service's ``parallelism.expert`` is one that its model has and its engine can be told.

An engine of a dense model does not start with whole experts asked of it. vLLM lays experts out over
all of a tensor group or none of it: its flag takes no number. TGI has no flag for it.
"""

from __future__ import annotations

from poolwise.api.parallelism import ServingParallelism
from poolwise.errors import InvalidInput
from poolwise.model.shapes import Model, Transformer
from poolwise.plan.children.engines import ENGINES

_FIELD = "spec.parallelism.expert"


def read_sizes(given: ServingParallelism, model: Model, engine: str) -> ServingParallelism:
    """The sizes with what follows from ``expert``. Raises InvalidInput."""
    expert = given.expert or 1
    if expert == 1:
        return given
    shape = model.shape
    experts = shape.experts.count if isinstance(shape, Transformer) and shape.experts else 0
    if not experts:
        raise InvalidInput(_FIELD, f"must be 1, since {model.name} has no experts, is {expert}")
    if experts % expert:
        told = f"must divide the {experts} experts of {model.name}, is {expert}"
        raise InvalidInput(_FIELD, told)
    if given.tensor is not None and given.tensor % expert:
        raise InvalidInput(_FIELD, f"must divide tensor ({given.tensor}), is {expert}")
    return _as_the_engine_can(given, expert, engine)


def _as_the_engine_can(given: ServingParallelism, expert: int, engine: str) -> ServingParallelism:
    """An engine that is not told how it divides a model (Triton, one's own) is taken at its
    owner's word."""
    flags = ENGINES[engine].flags
    if "tensor" not in flags or "{}" in flags.get("expert", ""):
        return given
    if "expert" not in flags:
        raise InvalidInput(_FIELD, f"must be 1 for engine {engine}, is {expert}")
    if given.tensor not in (None, expert):
        told = f"must be 1 or tensor ({given.tensor}) for engine {engine}, which lays experts out"
        raise InvalidInput(_FIELD, f"{told} over all accelerators that share a layer, is {expert}")
    return given.model_copy(update={"tensor": expert})
