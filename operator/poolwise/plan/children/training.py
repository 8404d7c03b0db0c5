"""A training job's children: an Indexed Job with one pod per node, and a headless Service.

The pods form one gang. A failed rank is replaced ``backoffLimit`` times, counted by rank: when
one rank fails, the others lose their rendezvous and fail once each, and a limit over the sum of
failures would be used up by the first incident of a large gang. Pods that were disrupted
(preemption, drain, node loss) do not count at all.
"""

from __future__ import annotations

from poolwise.api import TrainingJobSpec
from poolwise.plan.children.environment import RENDEZVOUS_PORT
from poolwise.plan.children.metadata import (
    JOB_NAME_LIMIT,
    key_of,
    metadata,
    recorded_metadata,
    selector_labels,
    without_empty,
)
from poolwise.plan.children.ranks import (
    Rendezvous,
    TrainingRun,
    disruption_rule,
    rank_template,
    service_name,
)
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest

FAILURES = "batch.kubernetes.io/job-index-failure-count"


def job_name(name: str) -> str:
    """Name of the Job of a TrainingJob."""
    return child_name(name, limit=JOB_NAME_LIMIT)


def training_children(run: TrainingRun) -> tuple[Manifest, ...]:
    """Job and Service."""
    return _service(run), _job(run)


def changeable(spec: TrainingJobSpec) -> Manifest:
    """What may still change on a Job that exists."""
    return {"activeDeadlineSeconds": spec.active_deadline_seconds}


def _service(run: TrainingRun) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(run.resource, run.record, service_name(run.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(key_of(run.resource)),
            "ports": [
                {"name": "rendezvous", "port": RENDEZVOUS_PORT, "targetPort": RENDEZVOUS_PORT}
            ],
        },
    }


def _job(run: TrainingRun) -> Manifest:
    spec, record, name = run.spec, run.record, job_name(run.name)
    child = recorded_metadata(run.resource, record, name)
    meets = Rendezvous(service_name(run.name), f"{name}-0", FAILURES)
    template = rank_template(run, meets)
    template["spec"]["subdomain"] = meets.subdomain
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": child,
        "spec": {
            "completionMode": "Indexed",
            "completions": record.pods,
            "parallelism": record.pods,
            "backoffLimitPerIndex": spec.backoff_limit,
            "maxFailedIndexes": 0,
            **without_empty(changeable(spec)),
            "podFailurePolicy": disruption_rule("Ignore"),
            "podReplacementPolicy": "Failed",
            "template": template,
        },
    }
