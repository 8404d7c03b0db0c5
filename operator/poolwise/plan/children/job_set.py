"""A training job's child where the cluster has JobSet: one JobSet of one Indexed Job.

A rank that fails ends its Job, and the JobSet starts all ranks anew, ``backoffLimit`` times: the
others lost their rendezvous anyway. All old pods are gone before new ones come, since they would
wait for the same nodes. A pod that was disrupted (preemption, drain, node loss) ends its Job at
once for that reason, and such a restart is not counted. A rank that fails because of it before the
disrupted pod itself has ended can still cost a retry.

``activeDeadlineSeconds`` holds for each attempt, and cannot change once the JobSet exists.
Exclusive placement (one Job per domain of the fabric) is not asked for: the ledger has promised
the nodes already, and other work may share their domain.
"""

from __future__ import annotations

from poolwise.api import TrainingJob, TrainingJobSpec
from poolwise.plan import names
from poolwise.plan.children.metadata import recorded_metadata, without_empty
from poolwise.plan.children.ranks import Gang, disruption_rule, rank_template, service_name
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool

NAME_LIMIT = 44
"""Pods add ``-node-0``, an index of at most five digits and a random part, within a DNS label."""
ROLE = "node"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


def job_set_name(name: str) -> str:
    """Name of the JobSet of a TrainingJob."""
    return child_name(name, limit=NAME_LIMIT)


def job_set_children(
    resource: Object, record: PlacementRecord, pool: Pool, version: str
) -> tuple[Manifest, ...]:
    """The JobSet; it makes its headless Service itself."""
    spec = TrainingJob.model_validate(resource).spec
    name = resource["metadata"]["name"]
    child = recorded_metadata(resource, record, job_set_name(name))
    gang = Gang(service_name(name), f"{job_set_name(name)}-{ROLE}-0-0", ATTEMPT)
    job = {
        "metadata": {"labels": dict(child["labels"])},
        "spec": _job(spec, record, rank_template(resource, spec, record, pool, gang)),
    }
    return (
        {
            "apiVersion": f"{names.JOBSET}/{version}",
            "kind": "JobSet",
            "metadata": child,
            "spec": {
                "network": {
                    "enableDNSHostnames": True,
                    "publishNotReadyAddresses": True,
                    "subdomain": gang.subdomain,
                },
                "failurePolicy": _failure_policy(spec),
                "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": job}],
                **without_empty(changeable(spec)),
            },
        },
    )


def changeable(spec: TrainingJobSpec) -> Manifest:
    """What may still change on a JobSet that exists."""
    return {"ttlSecondsAfterFinished": spec.ttl_seconds_after_finished}


def _failure_policy(spec: TrainingJobSpec) -> Manifest:
    """A disruption costs no retry; a deadline that has passed leaves none."""
    return {
        "maxRestarts": spec.backoff_limit,
        "restartStrategy": "BlockingRecreate",
        "rules": [
            {
                "name": "disrupted",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
            },
            {
                "name": "late",
                "action": "FailJobSet",
                "onJobFailureReasons": ["DeadlineExceeded"],
            },
        ],
    }


def _job(spec: TrainingJobSpec, record: PlacementRecord, template: Manifest) -> Manifest:
    deadline_seconds = spec.active_deadline_seconds
    return {
        "completionMode": "Indexed",
        "completions": record.pods,
        "parallelism": record.pods,
        "backoffLimit": 0,
        **without_empty({"activeDeadlineSeconds": deadline_seconds}),
        "podFailurePolicy": disruption_rule("FailJob"),
        "podReplacementPolicy": "Failed",
        "template": template,
    }
