"""A watch of our own: where it goes on from, what it hands on, and when it ends."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.following import Follower, Silent
from poolwise.cluster.kube_errors import Expired
from poolwise.cluster.resources import LOCAL_QUEUES
from poolwise.errors import Forbidden, NotFound, Unavailable
from poolwise.plan.names import KUEUE
from tests.fake_kube import FakeKube


def queue(name, version):
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"namespace": "a", "name": name, "uid": name, "resourceVersion": version},
    }


BOOKMARK = "BOOKMARK", {"metadata": {"resourceVersion": "9"}}


class Scripted(FakeKube):
    """Its watches are told one after the other: events, and the error that ends each, if any."""

    def __init__(self, *streams):
        super().__init__()
        self.optional = {KUEUE: ("v1beta2",)}
        self.left, self.versions = list(streams), []

    async def watch(self, resource, namespace=None, version=None):
        self.versions.append(version)
        for event in self.left.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


class Listener(Silent):
    """Remembers what it is told, and notes it."""

    def __init__(self, cache):
        super().__init__(cache)
        self.seen, self.gone = [], []

    def see(self, resource, change, document):
        self.seen.append((change, document["metadata"]["name"]))
        super().see(resource, change, document)

    def touch(self, resource, document):
        self.gone.append(document["metadata"]["name"])


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("poolwise.cluster.clock.jitter", lambda: 1.0)


def followed(kube):
    cache = Cache()
    listener = Listener(cache)
    asyncio.run(Follower(kube, cache, lambda: listener, LOCAL_QUEUES, None).run())
    return listener


def test_a_stream_that_ends_goes_on_from_the_newest_event(rests):
    kube = Scripted(
        [("ADDED", queue("x", "3")), ("MODIFIED", queue("x", "5"))],
        [("ADDED", queue("y", "7"))],
        [NotFound("")],
    )
    assert followed(kube).seen == [("ADDED", "x"), ("MODIFIED", "x"), ("ADDED", "y")]
    assert kube.versions == [None, "5", "7"]


def test_a_stream_that_ends_while_it_tells_what_is_there_is_told_all_of_it_anew(rests):
    kube = Scripted(
        [("ADDED", queue("x", "8"))],
        [("ADDED", queue("x", "8")), ("ADDED", queue("y", "5"))],
        [NotFound("")],
    )
    listener = followed(kube)
    assert kube.versions[1] is None, "y is older than x, and was not sent yet"
    assert listener.seen[-1] == ("ADDED", "y")


def test_a_bookmark_is_where_to_go_on_from_and_no_object(rests):
    kube = Scripted([("ADDED", queue("x", "3")), BOOKMARK], [Forbidden("")])
    assert followed(kube).seen == [("ADDED", "x")]
    assert kube.versions == [None, "9"]


def test_after_a_version_that_is_too_old_what_vanished_meanwhile_is_found(rests):
    kube = Scripted([("ADDED", queue("x", "3")), Expired("410")], [NotFound("")])
    assert followed(kube).gone == ["x"]
    assert kube.versions == [None, None]


def test_one_that_breaks_is_opened_again_later_and_later(rests):
    kube = Scripted(*[[Unavailable("503")]] * 4, [], [Unavailable("503")], [NotFound("")])
    followed(kube)
    assert rests == [1, 1, 2, 3, 0.5, 1], "one that was answered begins anew"


def test_what_vanished_is_found_once_it_can_be_listed(rests, monkeypatch):
    kube = Scripted([("ADDED", queue("x", "3")), BOOKMARK, Expired("410")], [NotFound("")])
    pages, answers = kube.pages, [None, Unavailable("429"), None]

    async def listed(resource, namespace=None, *, metadata_only=False):
        if error := answers.pop(0):
            raise error
        async for page in pages(resource, namespace, metadata_only=metadata_only):
            yield page

    monkeypatch.setattr(kube, "pages", listed)
    assert followed(kube).gone == ["x"]
    assert not answers, "a list that failed is read again before the watch goes on"
