"""Labels, annotations and names that Poolwise writes; one place, since other tools read them."""

from __future__ import annotations

import hashlib

from poolwise import api

GROUP = api.GROUP
FIELD_MANAGER = "poolwise"

MANAGED_BY = "app.kubernetes.io/managed-by"
OWNER_KIND = f"{GROUP}/owner-kind"
OWNER_NAME = f"{GROUP}/owner"
"""The owner's name, shortened to a label's length; the ownerReference's uid is what counts."""
POOL = f"{GROUP}/pool"
CHILD_LABELS = (MANAGED_BY, OWNER_KIND, OWNER_NAME, POOL)
"""On every child."""
OVERFLOW = f"{GROUP}/overflow"
"""Label of a Deployment with replicas beyond the pool that the service is placed on: ``true``."""
DISCOVERED = f"{GROUP}/discovered"

PLACEMENT = f"{GROUP}/placement"
"""Annotation on the child that runs the pods: the decision as JSON (see plan.records).

It is the durable record: a restarted operator learns from it what each workload holds.
"""
PAUSED = f"{GROUP}/paused"

UNDISRUPTED = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations of pods whose nodes autoscalers leave alone."""

LABEL_LIMIT = 63

JOBSET = "jobset.x-k8s.io"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io"
TRAINER = "trainer.kubeflow.org"
KUEUE = "kueue.x-k8s.io"
INFERENCE, INFERENCE_OLD = "inference.networking.k8s.io", "inference.networking.x-k8s.io"
"""Groups of the APIs that are used where they are served (``Observed.apis``)."""


def pool_label(pool: str) -> str:
    """A pool's name as the value of a label."""
    return pool if len(pool) <= LABEL_LIMIT else child_name(pool)


def overflow_name(owner: str, pool: str) -> str:
    """Of what runs a service's replicas on a further pool."""
    return child_name(owner, f"-{hashlib.sha256(pool.encode()).hexdigest()[:5]}")


def child_name(owner: str, suffix: str = "", limit: int = LABEL_LIMIT) -> str:
    """A deterministic DNS label: ``owner`` and ``suffix``, shortened with a hash if too long.

    It starts with a letter, as names of Services must.

    >>> child_name("llama-70b", "-ranks")
    'llama-70b-ranks'
    """
    dashed = owner.replace(".", "-")
    if dashed == owner and owner[:1].isalpha() and len(owner) + len(suffix) <= limit:
        return owner + suffix
    if not dashed[:1].isalpha():
        dashed = f"n{dashed}"
    digest = hashlib.sha256(owner.encode()).hexdigest()[:8]
    kept = dashed[: limit - len(suffix) - len(digest) - 1].rstrip("-")
    return f"{kept}-{digest}{suffix}"
