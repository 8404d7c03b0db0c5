"""What runs the pods of a workload and has lost our label, by which it is watched, gets it back."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.cluster.resources import DEPLOYMENTS, JOB_SETS, JOBS, Resource
from poolwise.plan.names import JOBSET, POOL
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job

JOBSET_SERVED = {JOBSET: "v1alpha2"}


def runner(shell: Shell, kind: Resource) -> dict[str, Any]:
    [found] = shell.kube.all(kind)
    return found


def take_labels(shell: Shell, kind: Resource) -> None:
    """As ``kubectl label KIND NAME app.kubernetes.io/managed-by- ...`` does."""
    live = runner(shell, kind)
    others = {POOL: live["metadata"]["labels"][POOL]}
    shell.put({**live, "metadata": {**live["metadata"], "labels": others}})


def train(**spec: Any) -> dict[str, Any]:
    return training_job("a", "train", 8, **spec)


RUNNING = [
    pytest.param(train(runtime="Job"), 8, JOBS, {}, id="Job"),
    pytest.param(train(runtime="JobSet"), 8, JOB_SETS, JOBSET_SERVED, id="JobSet"),
    pytest.param(chat_service("a", "chat"), 1, DEPLOYMENTS, {}, id="Deployment"),
]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("workload", "devices", "kind", "apis"), RUNNING)
def test_it_gets_them_back_and_stays_where_it_is(workload, devices, kind, apis, restarts):
    shell = Shell(apis=apis)
    shell.put(h100_node(devices, name="one"), workload)
    shell.run()
    shell.start_pods("one")
    before = runner(shell, kind)
    if restarts:
        take_labels(shell, kind)
        writes = shell.run()
    else:
        writes = shell.run(lambda: take_labels(shell, kind))
    after = runner(shell, kind)
    assert f"patch {kind.plural}/{after['metadata']['name']}" in writes
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert condition(shell.look(workload), "Placed")["status"] == "True"
    assert not any("events" in write for write in writes)
    assert shell.run() == []
