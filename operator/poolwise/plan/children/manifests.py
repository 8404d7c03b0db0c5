"""The objects that run a placed workload, as complete manifests for server-side apply.

============== ============================================================================
TrainingJob    Indexed Job, headless Service (:mod:`poolwise.plan.children.training`)
InferenceService  Deployment, Service, PodDisruptionBudget (:mod:`poolwise.plan.children.serving`)
============== ============================================================================

They follow from the resource, the pool and the :class:`PlacementRecord` alone, which is written on
the Job or Deployment: a plan that is kept gives the same bytes again.

A Job's pods cannot be changed once it exists, so a Job is applied only where there is none;
:func:`changes_to_job` has what may still change.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from poolwise.errors import InvalidInput
from poolwise.plan.children.budget import record_of
from poolwise.plan.children.serving import serving_children
from poolwise.plan.children.training import changes_to_job, training_children
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.settings import Settings

__all__ = ["changes_to_job", "check", "children", "record_of"]

Manifest = dict[str, Any]


def children(
    resource: Object,
    plan: Plan,
    pool: Pool,
    settings: Settings,
    apis: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Manifest, ...]:
    """Manifests in the order in which they should be applied; what runs pods comes last.

    ``apis`` are the optional APIs that are served (``Observed.apis``).

    :raises InvalidInput: where the engine of a service has no build for the pool, or its model
        cannot be loaded from where the spec says.
    """
    record = record_of(plan, pool, settings)
    if plan.key.kind is Kind.TRAINING_JOB:
        return training_children(resource, record, pool)
    return serving_children(resource, record, pool, settings)


def check(resource: Object) -> None:
    """Whether what can be planned can be run as well: a plan alone needs no image.

    :raises InvalidInput: where it cannot, wherever it would be placed.
    """
    spec = resource.get("spec") or {}
    is_run = resource["kind"] == Kind.TRAINING_JOB and spec.get("mode", "Run") == "Run"
    if is_run and not (spec.get("run") or {}).get("image"):
        raise InvalidInput("spec.run.image", "must name an image where mode is Run, is empty")
