"""Values: what the plan is made from, as the API server (or a file) has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from poolwise.plan.decision import Key, Outcome, RoomToGrow
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.pool import Pool
from poolwise.plan.standing import Standing

Object = Mapping[str, Any]
"""A Kubernetes object as a plain dict, never changed."""
Manifest = dict[str, Any]
"""One that is being made, or a part of it."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Objects of Kueue."""

    local_queues: Sequence[Object] = ()
    cluster_queues: Sequence[Object] = ()
    flavors: Sequence[Object] = ()
    priorities: Sequence[Object] = ()
    """WorkloadPriorityClasses."""
    checks: Sequence[Object] = ()
    """AdmissionChecks, of whatever controller."""
    workloads: Sequence[Object] = ()
    """One for each job that waits in a queue, or runs from it; finished ones are left out."""


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
    """What runs pods and is labelled ``app.kubernetes.io/managed-by: poolwise``: Jobs, Deployments,
    and where they are served JobSets, LeaderWorkerSets and TrainJobs."""
    priority_classes: Sequence[Object] = ()
    """PriorityClasses, for the order in which workloads are placed."""
    corrections: Corrections = field(default_factory=Corrections)
    """What was measured of workloads that ran."""
    standing: Standing = field(default_factory=Standing)
    """What the last pass left: prices, and room that is kept."""
    apis: Mapping[str, str] = field(default_factory=dict)
    """Version in use by group, of the optional APIs that are served and may be read."""
    apis_off: Mapping[str, str] = field(default_factory=dict)
    """Why an optional API that is there cannot be used, by group: one sentence."""
    is_cluster: bool = True
    """Whether this is a cluster: files do not tell what it serves, so nothing is refused for it."""
    scaling: Mapping[Key, int] = field(default_factory=dict)
    """Replicas that the load of services asks for, in mode Direct, where it is known: on the pool
    that they are placed on."""
    overflow: Mapping[Key, Mapping[str, int]] = field(default_factory=dict)
    """The same on further pools; what is not named is given up. A service that is not named keeps
    what it has; one that is, is told where there is room (:attr:`Decisions.rooms`)."""
    queues: Queues = field(default_factory=Queues)
    """What Kueue knows; empty where it is not installed."""
    training_runtimes: Sequence[Object] = ()
    """ClusterTrainingRuntimes and TrainingRuntimes of Kubeflow Trainer."""
    autoscalers: Sequence[Object] = ()
    """HorizontalPodAutoscalers, of whatever they scale."""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What a Workload of Kueue is told by one AdmissionCheck of ours."""

    check: str
    state: str
    """Ready | Retry | Rejected"""
    message: str
    requeue_after_seconds: int | None = None
    pod_set_updates: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)  # without slots: it keeps what is worked out of it
class Decisions:
    """The answer to one :class:`Observed`."""

    pools: tuple[Pool, ...]
    outcomes: Mapping[Key, Outcome]
    free_accelerators: Mapping[str, int] = field(default_factory=dict)
    """By pool, before anything this pass placed."""
    idle_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By pool: nodes whose accelerators nobody holds, once this pass has placed."""
    rooms: Mapping[Key, RoomToGrow] = field(default_factory=dict)
    """Where services could have more replicas that asked, or did not get all that they need."""
    look_again_at: datetime | None = None
    """When time alone may change a decision: a start is overdue, or may be tried again, a run may
    be moved, or the optimiser may be asked again for who waits."""
    standing: Standing = field(default_factory=Standing)
    """What the next pass has to know, as :attr:`Observed.standing`."""
    apis: Mapping[str, str] = field(default_factory=dict)
    """As observed: what children may be made of."""
    answers: Mapping[tuple[str, str], CheckAnswer] = field(default_factory=dict)
    """By namespace and name of Kueue's Workloads that wait for our AdmissionCheck."""
    training_runtimes: Sequence[Object] = ()
    """The same, for TrainJobs."""
    former: Mapping[str, Pool] = field(default_factory=dict)
    """Pools that are gone, as :func:`poolwise.plan.history.succession.former_pools` has them."""

    @cached_property
    def places(self) -> Mapping[str, Pool]:
        """By the name that what runs there has it under: all pools, and those that are gone whose
        nodes another one has."""
        return {**self.former, **self.pools_by_name}

    @cached_property
    def pools_by_name(self) -> Mapping[str, Pool]:
        """All of them."""
        return {pool.name: pool for pool in self.pools}
