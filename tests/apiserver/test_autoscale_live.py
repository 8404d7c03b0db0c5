"""The operator scales real processes under a real load, as the simulator says it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.autoscale.live import Course, compare
from e2e.autoscale.local import Local
from e2e.autoscale.service import Wish
from e2e.autoscale.trace import Steps, Stretch
from e2e.controlplane import ports
from e2e.workloads import Observer
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import Operated, h100_node

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(480)]

WISH = Wish(metrics_port=ports.free(1)[0])
LOAD = (Stretch(40, 0.5), Stretch(20, 2.4), Stretch(80, 2.4))
COURSE = Course(Steps(LOAD, WISH.inputs, WISH.outputs), WISH)
SETTINGS = dict(COURSE.settings)
START_TIMEOUT_SECONDS = 120.0


def test_a_load_that_rises_costs_what_the_simulator_says(
    operator: Operated, namespace: str, nodes: NodeFactory, tmp_path: Path
) -> None:
    nodes([h100_node(), h100_node(), h100_node()])
    observer = Observer(operator.client, START_TIMEOUT_SECONDS)
    with Local(observer, namespace, WISH.metrics_port, tmp_path) as stage:
        found = compare(COURSE, stage)
    print(found)
    assert found.live.errors == 0
