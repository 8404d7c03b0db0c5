"""Controllers of others that Poolwise works with, installed on a test cluster and removed again.

Their manifests come from a folder with ``NAME.yaml`` (``POOLWISE_INTEGRATIONS``, else what
``../shared/kind/prepare --with-integrations`` left), else from the project's own release. An image
``local/NAME:dev`` of this machine is put on the nodes of a kind cluster first. Kubeflow Trainer is
built from its Go module where no manifest of it is at hand: see :mod:`e2e.kind.trainer`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.client import Object
from e2e.errors import HarnessError, ProcessFailed
from e2e.image.engine import image_exists
from e2e.kind import trainer
from e2e.kind.command import Completed, run, told
from e2e.progress import say
from e2e.tools.build import binaries
from e2e.tools.catalog import KIND

FOLDER_VARIABLE = "POOLWISE_INTEGRATIONS"
CACHE_VARIABLE, CACHE = "POOLWISE_KIND_CACHE", Path("~/.cache/poolwise-kind")
ROLLOUT = "--timeout=360s"
"""Webhooks wait for their certificates, and those for the kubelet's next look at secrets: a minute
and a half on an idle machine."""
ANSWER_SECONDS = 60.0

Kubectl = Callable[..., Completed]


class Unavailable(HarnessError):
    """An integration that cannot be installed here; the sentence says why."""


@dataclass(frozen=True)
class Integration:
    """One controller: what it is called, where it comes from, and what tells that it works."""

    name: str
    """Of its manifest and of its image."""
    deployment: str
    namespace: str
    release: str
    """Address of the manifest of the version that the tests were written for."""
    probe: Object
    """What its webhooks take once they answer."""


def _job_template() -> Object:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    return {"spec": {"template": {"spec": pod}}}


def _probe(api_version: str, kind: str, spec: Any) -> Object:
    metadata = {"name": "probe", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


_CONTAINERS = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
JOB_SET = Integration(
    name="jobset",
    deployment="jobset-controller-manager",
    namespace="jobset-system",
    release="https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml",
    probe=_probe(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "a", "template": _job_template()}]},
    ),
)
LEADER_WORKER_SET = Integration(
    name="lws",
    deployment="lws-controller-manager",
    namespace="lws-system",
    release="https://github.com/kubernetes-sigs/lws/releases/download/v0.9.0/manifests.yaml",
    probe=_probe(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 1, "workerTemplate": _CONTAINERS}},
    ),
)
TRAINER = Integration(
    name="trainer",
    deployment="kubeflow-trainer-controller-manager",
    namespace="kubeflow-system",
    release="",
    probe=_probe(
        "trainer.kubeflow.org/v1alpha1",
        "TrainingRuntime",
        {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": _job_template()}]}}},
    ),
)


@contextmanager
def installed(integration: Integration, kubectl: Kubectl, cluster: str) -> Iterator[None]:
    """With the integration on the cluster, ``cluster`` being its name where kind made it.

    :raises Unavailable: where there is nothing to install it from.
    """
    source = _source(integration, cluster)
    image = f"local/{integration.name}:dev"
    if cluster and _is_here(image):
        run([binaries((KIND,))["kind"], "load", "docker-image", image, "--name", cluster])
    say(f"==> installing {integration.name} from {source}")
    try:
        _apply(integration, kubectl, source)
        yield
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=true", "-f", source)


def _source(integration: Integration, cluster: str) -> str:
    """File or address of the manifest."""
    given = os.environ.get(FOLDER_VARIABLE)
    prepared = Path(os.environ.get(CACHE_VARIABLE) or CACHE).expanduser() / "manifests"
    for folder in [Path(given)] if given else [prepared]:
        found = folder / f"{integration.name}.yaml"
        if found.is_file():
            return str(found)
    if integration.release:
        return integration.release
    if not cluster:
        raise Unavailable(
            f"no manifest of {integration.name}: {FOLDER_VARIABLE} names no folder with "
            f"{integration.name}.yaml, and only a kind cluster of this machine takes one built here"
        )
    return str(trainer.build())


def _is_here(image: str) -> bool:
    try:
        return image_exists(image)
    except HarnessError:
        return False


def _apply(integration: Integration, kubectl: Kubectl, source: str) -> None:
    """Apply, and return once its webhooks answer."""
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", source)
    if applied.returncode:
        raise Unavailable(f"{integration.name} cannot be installed here: {told(applied)}")
    where = f"--namespace={integration.namespace}"
    rolled = kubectl("rollout", "status", where, ROLLOUT, f"deployment/{integration.deployment}")
    if rolled.returncode:
        raise ProcessFailed(told(rolled))
    deadline = time.monotonic() + ANSWER_SECONDS
    while (answer := _asked(integration, kubectl)).returncode:
        if time.monotonic() > deadline:
            raise ProcessFailed(told(answer))
        time.sleep(1)


def _asked(integration: Integration, kubectl: Kubectl) -> Completed:
    return kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(integration.probe))
