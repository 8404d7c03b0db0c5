"""Which kind of object runs the pods of a workload, given what the cluster serves.

A run of several pods is one JobSet where there is JobSet: a rank that fails restarts all of them
together, and a disruption costs no retry. Without it, it is one Indexed Job. A TrainJob is made
only for who names a runtime of Kubeflow Trainer. A service is a Deployment; only a replica that
spans nodes needs a LeaderWorkerSet, and is planned only where there is one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from poolwise.errors import InvalidInput
from poolwise.plan import names
from poolwise.plan.decision import Kind
from poolwise.plan.observed import Object, Observed


class Runtime(enum.StrEnum):
    """Kinds of child that run pods, and bear the record of the placement."""

    JOB = "Job"
    JOB_SET = "JobSet"
    TRAIN_JOB = "TrainJob"
    DEPLOYMENT = "Deployment"
    LEADER_WORKER_SET = "LeaderWorkerSet"


@dataclass(frozen=True, slots=True)
class Served:
    """What a cluster has beside Kubernetes' own kinds, for runs and services to be made of."""

    apis: Mapping[str, str] = field(default_factory=dict)
    """Versions of the optional APIs by group, as :attr:`Observed.apis`."""
    training_runtimes: Iterable[Object] = ()
    """Runtimes of Kubeflow Trainer."""


NOTHING_SERVED = Served()
_AUTO = "Auto"
_GROUPS = {
    Runtime.JOB_SET: names.JOBSET,
    Runtime.TRAIN_JOB: names.TRAINER,
    Runtime.LEADER_WORKER_SET: names.LEADER_WORKER_SET,
}
_PRODUCTS = {
    Runtime.JOB_SET: "JobSet",
    Runtime.TRAIN_JOB: "Kubeflow Trainer",
    Runtime.LEADER_WORKER_SET: "LeaderWorkerSet",
}
RUNTIMES_NAMED = 8
"""Runtimes of Kubeflow Trainer that a sentence lists."""


def is_served(runtime: Runtime, apis: Mapping[str, str]) -> bool:
    """Whether the cluster has such objects; ``apis`` are versions by group."""
    return runtime not in _GROUPS or _GROUPS[runtime] in apis


def runtime_of_run(
    wished: str, has_runtime_ref: bool, pods: int, apis: Mapping[str, str]
) -> Runtime:
    """The kind of object for a training run: what is asked for, else what suits its pods."""
    if wished != _AUTO:
        return Runtime(wished)
    if has_runtime_ref:
        return Runtime.TRAIN_JOB
    is_set = pods > 1 and is_served(Runtime.JOB_SET, apis)
    return Runtime.JOB_SET if is_set else Runtime.JOB


def check_runtime(resource: Object, observed: Observed) -> None:
    """Whether the cluster can run a workload in the way that its spec asks for.

    :raises InvalidInput: where it cannot, with what would work.
    """
    spec = resource["spec"]
    wished, reference = spec.get("runtime") or _AUTO, spec.get("runtimeRef")
    is_run = resource.get("kind") == Kind.TRAINING_JOB and spec.get("mode") != "Plan"
    if not (is_run and observed.is_cluster):
        return
    runtime = runtime_of_run(wished, bool(reference), 1, observed.apis)
    if not is_served(runtime, observed.apis):
        field = "spec.runtimeRef" if reference else "spec.runtime"
        raise InvalidInput(field, _not_served(runtime, observed.apis_off, bool(reference)))
    if reference and find_runtime(resource, observed.training_runtimes) is None:
        told = _no_such_runtime(resource, observed.training_runtimes)
        raise InvalidInput("spec.runtimeRef", told)


def find_runtime(resource: Object, training_runtimes: Iterable[Object]) -> Object | None:
    """The runtime of Kubeflow Trainer that a TrainingJob names, if there is one."""
    kind, name = _reference(resource)
    found = _runtimes(resource, kind, training_runtimes)
    return next((each for each in found if each["metadata"]["name"] == name), None)


def _not_served(runtime: Runtime, apis_off: Mapping[str, str], has_reference: bool) -> str:
    group, product = _GROUPS[runtime], _PRODUCTS[runtime]
    others = "leave runtimeRef out" if has_reference else "say Auto or Job"
    why = apis_off.get(group) or f"the cluster does not serve {group}"
    return f"asks for a {runtime}, but {why}: install {product}, or {others}"


def _no_such_runtime(resource: Object, training_runtimes: Iterable[Object]) -> str:
    kind, name = _reference(resource)
    found = sorted(
        each["metadata"]["name"] for each in _runtimes(resource, kind, training_runtimes)
    )
    listed = ", ".join(found[:RUNTIMES_NAMED]) + (" and more" if found[RUNTIMES_NAMED:] else "")
    where = f" in namespace {_namespace(resource)}" if _is_namespaced(kind) else ""
    there = f"there are {listed}" if found else "there is none"
    return f"names {kind} {name}, which does not exist{where} ({there})"


def _reference(resource: Object) -> tuple[str, str]:
    reference: Mapping[str, Any] = resource["spec"]["runtimeRef"]
    return reference.get("kind") or "ClusterTrainingRuntime", str(reference["name"])


def _runtimes(resource: Object, kind: str, training_runtimes: Iterable[Object]) -> Iterable[Object]:
    wanted = _namespace(resource) if _is_namespaced(kind) else None
    for each in training_runtimes:
        if each.get("kind") == kind and each["metadata"].get("namespace") == wanted:
            yield each


def _is_namespaced(kind: str) -> bool:
    return kind == "TrainingRuntime"


def _namespace(resource: Object) -> str:
    return str(resource["metadata"].get("namespace") or "default")
