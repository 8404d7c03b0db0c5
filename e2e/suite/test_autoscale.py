"""Real pods follow a real load, as the simulator says they would."""

from __future__ import annotations

import pytest

from e2e.autoscale.courses import NARROW, steps
from e2e.autoscale.in_kind import InKind
from e2e.autoscale.live import compare
from e2e.autoscale.service import Wish
from e2e.controlplane.client import Client
from e2e.suite.doubles import client_pod
from e2e.suite.fleet import H100, pool_of
from e2e.suite.operator import Operator
from e2e.workloads import Observer
from poolwise.settings import Settings

WISH = Wish(most_replicas=4)
"""All that two nodes of eight take."""


@pytest.mark.timeout(900)
def test_pods_follow_a_load_that_rises(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    """As the chart installs it: looks every ten seconds, requests through the Service."""
    pod = client.create(client_pod(namespace))
    observer.wait_condition(pod, "Ready", "True")
    words = ["exec", "--stdin", f"--namespace={namespace}", "client", "--"]

    def inside(*command: str, stdin: str) -> str:
        return operator.command(*words, *command, stdin=stdin)

    course = steps(NARROW, WISH, interval_seconds=float(Settings().scaling_interval_seconds))
    pool = pool_of(client, H100)["metadata"]["name"]
    with InKind(observer, namespace, inside) as stage:
        found = compare(course, stage, placement={"pools": [pool]})
    print(found)
    assert found.live.errors == 0, str(found)
    if found.complaint:
        pytest.skip(found.complaint)
    assert found.differences() == [], str(found)
