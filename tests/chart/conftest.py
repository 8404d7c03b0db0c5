"""The chart in a cluster: installed once, for the tests of this folder that need an API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e import profiles
from e2e.chart.generated import OPERATOR
from e2e.controlplane import namespaces, nodes
from tests.apiserver.operated import h100_node
from tests.chart.cluster import MONITORING_CRDS, WAIT, Cluster, running
from tests.chart.rendering import IMAGE, RELEASE, merged
from tests.chart.variations import MONITORING

VALUES = merged(IMAGE, *MONITORING.values())


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with nodes and the resources of the Prometheus operator, and nothing of ours."""
    with running("poolwise-chart") as cluster:
        cluster.apply(MONITORING_CRDS)
        nodes.add(cluster.client, [*profiles.render("cpu-only"), h100_node()])
        yield cluster


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Cluster:
    """The cluster with the chart in it, everything on, ready."""
    done = cluster.helm("install", RELEASE, str(OPERATOR), *WAIT, values=VALUES)
    assert done.returncode == 0, done.stderr
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace."""
    name = namespaces.create(cluster.client)
    yield name
    namespaces.remove(cluster.client, name)
