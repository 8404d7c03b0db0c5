"""The objects that run a placed workload, as complete manifests for server-side apply.

================  ==========================================================================
TrainingJob       Indexed Job, headless Service (:mod:`poolwise.plan.children.training`);
                  or JobSet (:mod:`poolwise.plan.children.job_set`);
                  or TrainJob (:mod:`poolwise.plan.children.train_job`)
InferenceService  Deployment, Service, PodDisruptionBudget (:mod:`poolwise.plan.children.serving`);
                  or LeaderWorkerSet in its place (:mod:`poolwise.plan.children.groups`)
================  ==========================================================================

They follow from the resource, the pool and the :class:`PlacementRecord` alone, which is written on
the child that runs the pods: a plan that is kept gives the same bytes again. While the API of a
child is gone there is nothing to write, and nothing else takes its place.

The pods of a training job cannot be changed once they exist, so what runs them is applied only
where there is none; :func:`changes_to_run` has what may still change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from poolwise.api import InferenceServiceSpec, TrainingJobSpec
from poolwise.errors import InvalidInput
from poolwise.plan import names
from poolwise.plan.children import training
from poolwise.plan.children.budget import longest_over_told, record_of
from poolwise.plan.children.groups import group_set_name
from poolwise.plan.children.job_set import job_set_children, job_set_name
from poolwise.plan.children.ranks import TrainingRun
from poolwise.plan.children.replica import Replica
from poolwise.plan.children.serving import serving_children
from poolwise.plan.children.train_job import train_job_children
from poolwise.plan.children.training import training_children
from poolwise.plan.decision import Key, Kind, PlacementRecord, Plan
from poolwise.plan.kueue.child import queued
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool
from poolwise.plan.records.runtimes import (
    NOTHING_SERVED,
    Runtime,
    Served,
    find_runtime,
    runtime_of_run,
)
from poolwise.settings import Settings

__all__ = ["changes_to_run", "check", "children", "record_of", "runner_names"]

WITHOUT_RECORD = (Runtime.JOB, Runtime.DEPLOYMENT)
"""Kinds that a record does not name."""


def children(
    resource: Object,
    plan: Plan,
    pool: Pool,
    settings: Settings,
    served: Served = NOTHING_SERVED,
    further: Mapping[str, Pool] = MappingProxyType({}),
) -> tuple[Manifest, ...]:
    """Manifests in the order in which they should be applied; what runs pods comes last.

    ``further`` are the pools by name that parts of a service are on: a part whose pool is gone has
    no nodes either, and is left out, as is one whose pool does not tell what its pods ask for.

    :raises InvalidInput: where the engine of a service has no build for the pool, its model cannot
        be loaded from where the spec says, or a runtime has nothing to train in.
    """
    if plan.key.kind is Kind.INFERENCE_SERVICE:
        spec = InferenceServiceSpec.model_validate(resource["spec"])
        longest = longest_over_told(spec, settings)

        def replica(part: Plan, pool: Pool) -> Replica:
            record = record_of(part, pool, settings, longest)
            return Replica(plan.key, spec, record, pool, settings)

        at = [(part, further.get(part.claim.pool)) for part in plan.parts if part.claim]
        parts = [replica(part, each) for part, each in at if each and each.tells_devices]
        return serving_children(resource, replica(plan, pool), served.apis, parts)
    return _of_run(resource, plan, record_of(plan, pool, settings), pool, served)


def changes_to_run(resource: Object, runtime: str) -> Manifest:
    """What may still change on a child of that kind that exists, as a merge patch: pods cannot."""
    spec = TrainingJobSpec.model_validate(resource["spec"])
    return {"spec": training.changeable(spec) if runtime == Runtime.JOB else {}}


def _of_run(
    resource: Object, plan: Plan, record: PlacementRecord, pool: Pool, served: Served
) -> tuple[Manifest, ...]:
    spec = TrainingJobSpec.model_validate(resource["spec"])
    if not plan.kept:
        record = _with_runtime(record, spec, served.apis)
    made = _unqueued(TrainingRun(resource, spec, record, pool), served)
    return tuple(queued(child, record.queue, spec.active_deadline_seconds) for child in made)


def _with_runtime(
    record: PlacementRecord, spec: TrainingJobSpec, apis: Mapping[str, str]
) -> PlacementRecord:
    runtime = runtime_of_run(spec.runtime, spec.runtime_ref is not None, record.pods, apis)
    return replace(record, runtime=None if runtime in WITHOUT_RECORD else runtime.value)


def _unqueued(run: TrainingRun, served: Served) -> tuple[Manifest, ...]:
    apis = served.apis
    match run.record.runtime:
        case None:
            return training_children(run)
        case Runtime.JOB_SET if names.JOBSET in apis:
            return job_set_children(run, apis[names.JOBSET])
        case Runtime.TRAIN_JOB if names.TRAINER in apis:
            found = find_runtime(run.resource, served.training_runtimes)
            if found is not None:
                return train_job_children(run, apis[names.TRAINER], found)
    return ()


def runner_names(key: Key) -> dict[str, str]:
    """What the objects that may run a workload's pods are called, by kind."""
    if key.kind is Kind.TRAINING_JOB:
        gang = job_set_name(key.name)
        return {
            Runtime.JOB: training.job_name(key.name),
            Runtime.JOB_SET: gang,
            Runtime.TRAIN_JOB: gang,
        }
    return {
        Runtime.DEPLOYMENT: names.child_name(key.name),
        Runtime.LEADER_WORKER_SET: group_set_name(key.name),
    }


def check(resource: Object) -> None:
    """Whether what can be planned can be run as well: a plan alone needs no image.

    :raises InvalidInput: where it cannot, wherever it would be placed.
    """
    spec = resource.get("spec") or {}
    is_run = resource["kind"] == Kind.TRAINING_JOB and spec.get("mode", "Run") == "Run"
    has_image = (spec.get("run") or {}).get("image") or spec.get("runtimeRef")
    if is_run and not has_image:
        raise InvalidInput("spec.run.image", "must name an image where mode is Run, is empty")
