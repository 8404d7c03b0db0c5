"""Over how many accelerators, or CPU cores, one replica may be divided, and how.

Tensor parallelism comes in powers of two within a node; a pipeline is used only where the heads do
not divide further. What the user has fixed is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.serving.groups import sizes_over_nodes
from poolwise.plan.requests.request import FixedReplica
from poolwise.plan.wording import plural, three_digits


@dataclass(frozen=True, slots=True)
class Node:
    """What one replica may take of a node."""

    accelerators: int
    cores: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one model on the nodes of one pool."""

    shape: object
    fixed: FixedReplica
    node: Node
    is_cpu: bool
    may_pipeline: bool
    """Whether the engine can divide layers over stages."""
    over_nodes: bool
    """Whether replicas span nodes, instead of sharing one."""

    def each(self, weights: str) -> Iterator[ServingLayout]:
        """The smallest first, with weights in this format."""
        if self.is_cpu:
            yield from self._over_cores(weights)
            return
        if self.over_nodes:
            shape, widest = self.shape, max(self._tensors(), default=1)
            per_node = self.node.accelerators
            yield from sizes_over_nodes(shape, self.fixed, per_node, widest, weights)
            return
        for tensor in self._tensors():
            for pipeline in self._pipelines(tensor):
                count = tensor * pipeline
                if self.fixed.accelerators in (None, count) and count <= self.node.accelerators:
                    for expert in self._experts(tensor):
                        yield ServingLayout(tensor, pipeline, expert, weights)

    def _over_cores(self, weights: str) -> Iterator[ServingLayout]:
        """Powers of two of the node's cores, each with its share of the memory."""
        cores = 1.0
        while cores <= self.node.cores:
            memory = self.node.memory_bytes * cores / self.node.cores
            yield ServingLayout(weight_format=weights, cpu_cores=cores, cpu_memory_bytes=memory)
            cores *= 2

    def _tensors(self) -> list[int]:
        shape, fixed = self.shape, self.fixed.tensor
        if not isinstance(shape, Transformer):
            return [1] if fixed in (None, 1) else []
        return [
            size
            for size in _powers_of_two(self.node.accelerators, fixed)
            if shape.divides_heads(size)
        ]

    def _pipelines(self, tensor: int) -> list[int]:
        """One stage, and more only where no larger tensor-parallel size divides the heads."""
        shape, fixed = self.shape, self.fixed.pipeline
        layers = shape.layers if isinstance(shape, Transformer) else 1
        if fixed is not None:
            return [fixed] if fixed == 1 or (self.may_pipeline and fixed <= layers) else []
        if not self.may_pipeline or tensor < max(self._tensors()):
            return [1]
        return [size for size in _powers_of_two(self.node.accelerators, None) if size <= layers]

    def _experts(self, tensor: int) -> list[int]:
        """Experts are divided like all weights unless the user gives each rank whole ones."""
        fixed = self.fixed.expert or 1
        return [fixed] if tensor % fixed == 0 else []

    def why_none(self) -> str:
        """What was fixed, and what it does not fit, as a clause."""
        fixed, shape = self.fixed, self.shape
        if self.is_cpu:
            most = three_digits(self.node.cores)
            return f"a replica takes one core at least, the largest node allocates {most}"
        if isinstance(shape, Transformer) and fixed.tensor and shape.heads % fixed.tensor:
            return (
                f"parallelism.tensor {fixed.tensor} does not divide the model's {shape.heads} heads"
            )
        if (fixed.pipeline or 1) > 1 and not self.may_pipeline:
            return f"parallelism.pipeline is {fixed.pipeline}, and the engine has no stages"
        given = {
            "accelerators.perReplica": fixed.accelerators,
            "parallelism.tensor": fixed.tensor,
            "parallelism.pipeline": fixed.pipeline,
            "parallelism.expert": fixed.expert,
        }
        listed = ", ".join(f"{name} {size}" for name, size in given.items() if size is not None)
        if not isinstance(shape, Transformer):
            return f"only a transformer is divided over accelerators, the spec gives {listed}"
        return (
            f"a replica with the given {listed} does not fit a node of "
            f"{plural(self.node.accelerators, 'accelerator')} and the model's heads"
        )


def _powers_of_two(most: int, fixed: int | None) -> list[int]:
    """Up to ``most``; a fixed size need be none."""
    if fixed is not None:
        return [fixed] if fixed <= most else []
    return [2**exponent for exponent in range(max(most, 1).bit_length())]
