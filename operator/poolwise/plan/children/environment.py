"""What a training container gets: the variables of api.md, usable as ``$(NAME)`` in arguments.

``PET_*`` are read by torchrun, ``MASTER_*`` by most other launchers. ``WORLD_SIZE`` and ``RANK``
exist only where one process runs per pod: with more, the launcher sets its own. The rank is the
pod's index in the Job; ``POOLWISE_ATTEMPT`` counts how often it was started before: the failures of
this rank in a Job, the restarts of all ranks in a JobSet.
"""

from __future__ import annotations

from poolwise.api import TrainingJobSpec
from poolwise.model.work import TrainingLayout
from poolwise.plan.children.pods import literal
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.observed import Manifest

RENDEZVOUS_PORT = 29500
"""torchrun's default."""
INDEX = "batch.kubernetes.io/job-completion-index"


def training_environment(
    spec: TrainingJobSpec, record: PlacementRecord, master: str, attempt_annotation: str
) -> list[Manifest]:
    """Our variables, in an order in which later ones may refer to earlier ones."""
    return [
        *_launcher(spec, record, master),
        _value("POOLWISE_NODES", record.pods),
        _annotation("POOLWISE_NODE_RANK", INDEX),
        *_layout(record),
        *([_value("POOLWISE_CHECKPOINT_DIR", spec.checkpoint.path)] if spec.checkpoint else []),
        _annotation("POOLWISE_ATTEMPT", attempt_annotation),
    ]


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
    layout = record.layout
    assert isinstance(layout, TrainingLayout)
    sizes = {
        "DATA_PARALLEL": layout.data,
        "TENSOR_PARALLEL": layout.tensor,
        "PIPELINE_PARALLEL": layout.pipeline,
        "EXPERT_PARALLEL": layout.expert,
        "CONTEXT_PARALLEL": layout.context,
        "ZERO_STAGE": layout.zero_stage,
        "MICRO_BATCH_SIZE": layout.micro_batch_size,
        "RECOMPUTE": layout.recompute.value,
    }
    return [_value(f"POOLWISE_{name}", size) for name, size in sizes.items()]


def _value(name: str, value: object) -> Manifest:
    return {"name": name, "value": literal(str(value))}


def _annotation(name: str, annotation: str) -> Manifest:
    path = f"metadata.annotations['{annotation}']"
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
