"""What a training container gets: the variables of api.md, usable as ``$(NAME)`` in arguments.

``PET_*`` are read by torchrun, ``MASTER_*`` by most other launchers. ``WORLD_SIZE`` and ``RANK``
exist only where one process runs per pod: with more, the launcher sets its own. The rank is the
pod's index in the Job; ``POOLWISE_ATTEMPT`` counts how often it was started before: the failures of
this rank in a Job, the restarts of all ranks in a JobSet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.api import TrainingJobSpec
from poolwise.model.work import TrainingLayout
from poolwise.plan.children.pods import literal
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.observed import Manifest
from poolwise.plan.records.shape import shape, training_layout

RENDEZVOUS_PORT = 29500
"""torchrun's default."""
INDEX = "batch.kubernetes.io/job-completion-index"
NODES = "POOLWISE_NODES"
_SHAPE = {
    "data": "POOLWISE_DATA_PARALLEL",
    "tensor": "POOLWISE_TENSOR_PARALLEL",
    "pipeline": "POOLWISE_PIPELINE_PARALLEL",
    "expert": "POOLWISE_EXPERT_PARALLEL",
    "context": "POOLWISE_CONTEXT_PARALLEL",
    "zeroStage": "POOLWISE_ZERO_STAGE",
    "microBatchSize": "POOLWISE_MICRO_BATCH_SIZE",
    "recompute": "POOLWISE_RECOMPUTE",
}
"""The variable of each part of a shape."""


def training_environment(
    spec: TrainingJobSpec, record: PlacementRecord, master: str, attempt_annotation: str
) -> list[Manifest]:
    """Our variables, in an order in which later ones may refer to earlier ones."""
    return [
        *_launcher(spec, record, master),
        _value(NODES, record.pods),
        _annotation("POOLWISE_NODE_RANK", INDEX),
        *_layout(record),
        *([_value("POOLWISE_CHECKPOINT_DIR", spec.checkpoint.path)] if spec.checkpoint else []),
        _annotation("POOLWISE_ATTEMPT", attempt_annotation),
    ]


def layout_told(variables: Mapping[str, Any]) -> TrainingLayout:
    """The layout that a container is told by its variables.

    :raises LookupError, ValueError: for variables that are not ours.
    """
    return training_layout({key: variables[name] for key, name in _SHAPE.items()})


def _launcher(spec: TrainingJobSpec, record: PlacementRecord, master: str) -> list[Manifest]:
    wished = spec.run.processes_per_node
    processes = (record.accelerators_per_pod or 1) if wished == "Auto" else wished
    variables = [
        _value("PET_NNODES", record.pods),
        _value("PET_NPROC_PER_NODE", processes),
        _annotation("PET_NODE_RANK", INDEX),
        _value("PET_RDZV_ENDPOINT", f"{master}:{RENDEZVOUS_PORT}"),
        _value("MASTER_ADDR", master),
        _value("MASTER_PORT", RENDEZVOUS_PORT),
    ]
    if processes == 1:
        variables += [_value("WORLD_SIZE", record.pods), _annotation("RANK", INDEX)]
    return variables


def _layout(record: PlacementRecord) -> list[Manifest]:
    told = shape(record.layout)
    return [_value(name, told[key]) for key, name in _SHAPE.items()]


def _value(name: str, value: object) -> Manifest:
    return {"name": name, "value": literal(str(value))}


def _annotation(name: str, annotation: str) -> Manifest:
    path = f"metadata.annotations['{annotation}']"
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
