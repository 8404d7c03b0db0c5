"""A training job's children: an Indexed Job with one pod per node, and a headless Service.

The pods form one gang. A failed rank is replaced ``backoffLimit`` times, counted by rank: when
one rank fails, the others lose their rendezvous and fail once each, and a limit over the sum of
failures would be used up by the first incident of a large gang. Pods that were disrupted
(preemption, drain, node loss) do not count at all.
"""

from __future__ import annotations

from poolwise.api import TrainingJob, TrainingJobSpec
from poolwise.plan.children.environment import RENDEZVOUS_PORT
from poolwise.plan.children.metadata import (
    JOB_NAME_LIMIT,
    key_of,
    metadata,
    recorded_metadata,
    selector_labels,
    without_empty,
)
from poolwise.plan.children.ranks import Gang, disruption_rule, rank_template, service_name
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool

FAILURES = "batch.kubernetes.io/job-index-failure-count"


def job_name(name: str) -> str:
    """Name of the Job of a TrainingJob."""
    return child_name(name, limit=JOB_NAME_LIMIT)


def training_children(
    resource: Object, record: PlacementRecord, pool: Pool
) -> tuple[Manifest, ...]:
    """Job and Service. Raises what pydantic raises for a spec that admission would refuse."""
    return _service(resource, record), _job(resource, record, pool)


def changeable(spec: TrainingJobSpec) -> Manifest:
    """What may still change on a Job that exists."""
    return {
        "activeDeadlineSeconds": spec.active_deadline_seconds,
        "ttlSecondsAfterFinished": spec.ttl_seconds_after_finished,
    }


def _service(resource: Object, record: PlacementRecord) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(resource, record, service_name(resource["metadata"]["name"])),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(key_of(resource)),
            "ports": [
                {"name": "rendezvous", "port": RENDEZVOUS_PORT, "targetPort": RENDEZVOUS_PORT}
            ],
        },
    }


def _job(resource: Object, record: PlacementRecord, pool: Pool) -> Manifest:
    spec = TrainingJob.model_validate(resource).spec
    name = resource["metadata"]["name"]
    child = recorded_metadata(resource, record, job_name(name))
    gang = Gang(service_name(name), f"{job_name(name)}-0", FAILURES)
    template = rank_template(resource, spec, record, pool, gang)
    template["spec"]["subdomain"] = gang.subdomain
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
