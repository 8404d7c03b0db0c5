"""Lists: complete before anything is decided, patient with a server that starts, honest else."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.listing import fill, prune, scopes
from poolwise.cluster.resources import NODES, PODS, TRAINING_JOBS
from poolwise.errors import InvalidInput, NotFound, Unavailable
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


def test_everything_is_known_before_the_cache_is_synced(kube):
    cache = Cache()
    assert not cache.synced.is_set()
    asyncio.run(fill(cache, kube, Settings()))
    assert cache.synced.is_set()
    assert len(cache.stores[NODES]) == 2


def test_a_server_that_is_not_ready_is_waited_for(kube):
    failing(kube, [Unavailable("storage is (re)initializing", retry_after_seconds=0.001)] * 3)
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings()))
    assert len(cache.stores[NODES]) == 2


def test_missing_resources_are_an_error_that_says_what_to_do(kube):
    failing(kube, [NotFound("404 page not found")])
    with pytest.raises(InvalidInput, match="kubectl apply --server-side -f crds/"):
        asyncio.run(fill(Cache(), kube, Settings()))


def test_ghosts_are_dropped_and_newcomers_stay(kube):
    """Nobody told of the end of ``one``, and ``three`` came while the list was on its way."""
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings()))
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


def test_a_list_that_fails_drops_nothing(kube):
    cache = Cache()
    asyncio.run(fill(cache, kube, Settings()))
    failing(kube, [Unavailable("503")])
    assert asyncio.run(prune(cache, kube, NODES, None)) == []
    assert len(cache.stores[NODES]) == 2


def test_namespaces_narrow_what_has_one():
    settings = Settings(namespaces=("a", "b"))
    assert tuple(scopes(TRAINING_JOBS, settings)) == ("a", "b")
    assert tuple(scopes(NODES, settings)) == (None,)
    assert tuple(scopes(PODS, Settings())) == (None,)
