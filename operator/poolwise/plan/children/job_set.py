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

from poolwise.api import TrainingJobSpec
from poolwise.plan import names
from poolwise.plan.children.metadata import recorded_metadata, without_empty
from poolwise.plan.children.ranks import (
    Rendezvous,
    TrainingRun,
    disruption_rule,
    rank_template,
    service_name,
)
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest

NAME_LIMIT = 44
"""Pods add ``-node-0``, an index of at most five digits and a random part, within a DNS label."""
ROLE = "node"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


def job_set_name(name: str) -> str:
    """Name of the JobSet of a TrainingJob."""
    return child_name(name, limit=NAME_LIMIT)


def job_set_children(run: TrainingRun, version: str) -> tuple[Manifest, ...]:
    """The JobSet; it makes its headless Service itself."""
    name = job_set_name(run.name)
    child = recorded_metadata(run.resource, run.record, name)
    meets = Rendezvous(service_name(run.name), f"{name}-{ROLE}-0-0", ATTEMPT)
    job = {
        "metadata": {"labels": dict(child["labels"])},
        "spec": _job(run, rank_template(run, meets)),
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
                    "subdomain": meets.subdomain,
                },
                "failurePolicy": _failure_policy(run.spec),
                "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": job}],
            },
        },
    )


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


def _job(run: TrainingRun, template: Manifest) -> Manifest:
    return {
        "completionMode": "Indexed",
        "completions": run.record.pods,
        "parallelism": run.record.pods,
        "backoffLimit": 0,
        **without_empty({"activeDeadlineSeconds": run.spec.active_deadline_seconds}),
        "podFailurePolicy": disruption_rule("FailJob"),
        "podReplacementPolicy": "Failed",
        "template": template,
    }
