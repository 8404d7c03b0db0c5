"""Values: what the plan is made from, as the API server (or a file) has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poolwise.plan.corrections import Corrections
from poolwise.plan.decision import Key, Outcome
from poolwise.plan.pool import Pool

Object = Mapping[str, Any]
"""A Kubernetes object as a plain dict, never changed."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One consistent view of the cluster."""

    nodes: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    pools: Sequence[Object] = ()
    """AcceleratorPools that people made; discovered ones are derived, never read back."""
    training_jobs: Sequence[Object] = ()
    inference_services: Sequence[Object] = ()
    children: Sequence[Object] = ()
    """Jobs and Deployments labelled ``app.kubernetes.io/managed-by: poolwise``."""
    priority_classes: Sequence[Object] = ()
    """PriorityClasses, for the order in which workloads are placed."""
    corrections: Corrections = field(default_factory=Corrections)
    """What was measured of workloads that ran."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The answer to one :class:`Observed`."""

    pools: tuple[Pool, ...]
    outcomes: Mapping[Key, Outcome]
    free_accelerators: Mapping[str, int] = field(default_factory=dict)
    """By pool, before anything this pass placed."""
