"""The operator scales real processes under a real load, as the simulator says it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.autoscale.courses import RISE, steps
from e2e.autoscale.live import compare
from e2e.autoscale.local import Local
from e2e.autoscale.service import Wish
from e2e.controlplane import ports
from e2e.workloads import Observer
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import Operated, h100_node

pytestmark = pytest.mark.apiserver

SETTINGS = dict(steps(RISE, Wish(metrics_port=0)).settings)
UP_SECONDS = 180.0
SLACK = 3.0
"""What the other tests leave of the processor varies; `make live-autoscale` allows none."""


def test_a_load_that_rises_costs_what_the_simulator_says(
    operator: Operated, namespace: str, nodes: NodeFactory, tmp_path: Path
) -> None:
    nodes([h100_node(), h100_node(), h100_node()])
    observer = Observer(operator.client, UP_SECONDS)
    [port] = ports.free(1)
    with Local(observer, namespace, port, tmp_path) as stage:
        found = compare(steps(RISE, Wish(metrics_port=port)), stage)
    if found.complaint:  # nor do failed requests tell anything then
        pytest.skip(found.complaint)
    assert found.live.errors == 0, str(found)
    assert found.live.most_replicas >= 3, str(found)
    assert found.differences(SLACK) == [], str(found)
