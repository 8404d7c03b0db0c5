"""Lists: complete before anything is decided, patient with a server that starts, honest else."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from poolwise.cluster.cache import Cache
from poolwise.cluster.listing import fill, prune, scopes
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import NODES, PODS, TRAINING_JOBS
from poolwise.errors import Forbidden, NotFound, Unavailable, Unreachable
from poolwise.settings import Settings
from tests.fake_kube import FakeKube


def node(name):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
def kube():
    kube = FakeKube()
    for name in ("one", "two"):
        kube.put(node(name))
    return kube


def failing(kube, errors):
    """The next lists fail with these."""
    pages = kube.pages

    async def list_or_fail(resource, namespace=None, *, metadata_only=False):
        if errors:
            raise errors.pop(0)
        async for page in pages(resource, namespace, metadata_only=metadata_only):
            yield page

    kube.pages = list_or_fail


@pytest.fixture
def readiness():
    readiness = Readiness()
    readiness.server = "https://10.0.0.1:443"
    return readiness


def test_everything_is_read(kube, readiness):
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings(), readiness))
    assert len(cache.stores[NODES]) == 2


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            Unavailable("storage is (re)initializing"),
            "the API server https://10.0.0.1:443 is not ready: storage is (re)initializing",
        ),
        (
            Unreachable("Connection refused"),
            "the API server https://10.0.0.1:443 does not answer: Connection refused",
        ),
        (
            NotFound("404 page not found"),
            "CRD trainingjobs.poolwise.dev is not installed: helm upgrade with crds.install=true, "
            "or kubectl apply --server-side -f crds/",
        ),
        (
            Forbidden('cannot list resource "trainingjobs"'),
            'cannot list resource "trainingjobs"; the chart\'s roles give this right '
            "(files/rights.yaml)",
        ),
    ],
    ids=["not-ready", "away", "no-crd", "no-right"],
)
def test_what_is_in_the_way_is_told_once_and_waited_for(kube, readiness, rests, error, says):
    failing(kube, [error] * 4)
    cache = Cache()
    with capture_logs() as logs:
        asyncio.run(fill(cache, kube, Settings(), readiness))
    assert len(cache.stores[NODES]) == 2
    assert [each["problem"] for each in logs if each["event"] == "not ready"] == [says]
    assert readiness.problem.startswith("starting")  # until optional APIs were read as well
    assert len(rests) == 4
    assert rests[0] < rests[3]


def test_the_api_server_is_obeyed_when_it_says_how_long(kube, readiness, rests):
    failing(kube, [Unavailable("too many requests", retry_after_seconds=7)])
    asyncio.run(fill(Cache(), kube, Settings(), readiness))
    assert rests == [7]


def test_a_kind_that_discovery_does_not_tell_of_yet_is_waited_for(kube, readiness, rests):
    discovered, asked = kube.discovered, []

    async def late(group, version):
        asked.append(group)
        return await discovered(group, version) if len(asked) > 1 else frozenset()

    kube.discovered = late
    asyncio.run(fill(Cache(), kube, Settings(), readiness))
    assert len(rests) == 1


def test_ghosts_are_dropped_and_newcomers_stay(kube):
    """Nobody told of the end of ``one``, and ``three`` came while the list was on its way."""
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings(), Readiness()))
    kube.vanish(node("one"))
    pages = kube.pages

    async def list_slowly(resource, namespace=None, *, metadata_only=False):
        async for page in pages(resource, namespace, metadata_only=metadata_only):
            cache.put(NODES, kube.put(node("three")))
            yield page

    kube.pages = list_slowly
    ghosts = asyncio.run(prune(cache, kube, NODES, None))
    assert [ghost["metadata"]["name"] for ghost in ghosts] == ["one"]
    assert {each["metadata"]["name"] for each in cache.stores[NODES]} == {"two", "three"}


def test_ghosts_are_looked_for_by_metadata_alone(kube):
    """Whole objects would be most of what a large cluster is asked for."""
    pages, asked = kube.pages, []

    def list_and_note(resource, namespace=None, *, metadata_only=False):
        asked.append(metadata_only)
        return pages(resource, namespace, metadata_only=metadata_only)

    kube.pages = list_and_note
    asyncio.run(prune(Cache(), kube, NODES, None))
    assert asked == [True]


def test_a_list_that_fails_drops_nothing(kube):
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings(), Readiness()))
    failing(kube, [Unavailable("503")])
    with pytest.raises(Unavailable):
        asyncio.run(prune(cache, kube, NODES, None))
    assert len(cache.stores[NODES]) == 2


def test_namespaces_narrow_what_has_one():
    settings = Settings(namespaces=("a", "b"))
    assert tuple(scopes(TRAINING_JOBS, settings)) == ("a", "b")
    assert tuple(scopes(NODES, settings)) == (None,)
    assert tuple(scopes(PODS, Settings())) == (None,)
