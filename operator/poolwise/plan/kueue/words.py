"""Kueue's own names: labels, annotations, conditions and states, as its v1beta1 and v1beta2 have
them."""

from __future__ import annotations

import enum

from poolwise.plan.names import GROUP, KUEUE

QUEUE_LABEL = f"{KUEUE}/queue-name"
PRIORITY_LABEL = f"{KUEUE}/priority-class"
"""Names a WorkloadPriorityClass; without it the pods' PriorityClass counts."""
SECONDS_LABEL = f"{KUEUE}/max-exec-time-seconds"
GATE = f"{KUEUE}/admission-gated-by"
"""Annotation of a job: those who hold it back, separated by commas. It may only shrink."""
PLANNER = f"{GROUP}/planner"
"""Our name in :data:`GATE`."""
CONTROLLER = f"{GROUP}/placement"
"""Our ``controllerName`` in AdmissionChecks."""
ADMITTED = f"{GROUP}/admitted"
"""Label of pods that our AdmissionCheck let in: the uid of their Workload."""


class Mirror(enum.StrEnum):
    """Conditions of a Workload that a TrainingJob repeats."""

    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    EVICTED = "Evicted"


class CheckState(enum.StrEnum):
    """Of one AdmissionCheck on one Workload."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"
