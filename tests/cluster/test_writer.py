"""Writes: only while leading, never over somebody else's object, and known at once."""

from __future__ import annotations

import asyncio
import math

import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import SERVICES
from poolwise.cluster.writer import Writer
from poolwise.errors import Conflict, NameEnds, NameTaken, Unavailable, Unreachable
from poolwise.settings import Settings
from tests.fake_kube import FakeKube


def service(owner=None, **labels):
    owners = [{"uid": owner, "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "chat",
            "namespace": "a",
            "ownerReferences": owners,
            "labels": {"app.kubernetes.io/managed-by": "poolwise", **labels},
        },
        "spec": {},
    }


@pytest.fixture
def kube():
    return FakeKube()


@pytest.fixture
def cache():
    return Cache()


def test_what_was_written_is_known_before_any_event(kube, cache):
    asyncio.run(Writer(kube, cache, lambda: math.inf).apply(service("me")))
    assert cache.get(SERVICES, "a", "chat")["metadata"]["uid"]


def test_what_was_deleted_is_gone_before_any_event(kube, cache):
    writer = Writer(kube, cache, lambda: math.inf)
    applied = asyncio.run(writer.apply(service("me")))
    asyncio.run(writer.delete(applied))
    assert cache.get(SERVICES, "a", "chat") is None
    assert not cache.put(SERVICES, applied)


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        (None, "exists and is not ours"),
        ({"kind": "InferenceService", "name": "aa-ranks"}, "exists and belongs to .* aa-ranks"),
        ({"kind": "TrainingJob", "name": "me"}, "exists and belongs to an earlier TrainingJob me"),
    ],
    ids=["nobodys", "anothers", "namesakes"],
)
def test_an_object_of_somebody_else_is_not_touched(kube, cache, owner, whose):
    stranger, ours = service("somebody-else" if owner else None), service("me")
    del stranger["metadata"]["labels"]
    for each, told in ((stranger, owner), (ours, {"kind": "TrainingJob", "name": "me"})):
        if told:
            each["metadata"]["ownerReferences"][0] |= told
    kube.put(stranger)
    with pytest.raises(NameTaken, match=f"^Service chat {whose}$"):
        asyncio.run(Writer(kube, cache, lambda: math.inf).apply(ours))
    assert kube.writes == []


def test_one_that_is_being_deleted_is_told_as_such(kube, cache):
    stranger = service("somebody-else")
    stranger["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z"
    kube.put(stranger)
    with pytest.raises(NameEnds, match="is being deleted: a new one is made once it is gone"):
        asyncio.run(Writer(kube, cache, lambda: math.inf).apply(service("me")))


def test_nor_is_one_that_took_the_name_of_ours_unseen(kube, cache):
    writer = Writer(kube, cache, lambda: math.inf)
    kube.vanish(asyncio.run(writer.apply(service("me"))))
    stranger = kube.put(service("somebody-else"))
    with pytest.raises(Conflict):
        asyncio.run(writer.apply(service("me", tier="other")))
    assert kube.all(SERVICES) == [stranger]


def test_without_the_lease_nothing_is_written(kube, cache):
    writer = Writer(kube, cache, lambda: 0.0)
    known = kube.put(service("me"))
    for write in (
        writer.apply(service("me")),
        writer.patch(known, {"spec": {}}),
        writer.delete(known),
        writer.create(service("me")),
    ):
        with pytest.raises(Unavailable, match="does not lead"):
            asyncio.run(write)
    assert kube.writes == []


def test_a_write_that_changes_nothing_is_not_sent_twice(kube, cache):
    """The API server spells the quantity "1000m" as "1", so that they never look alike."""
    writer = Writer(kube, cache, lambda: math.inf)
    asyncio.run(writer.apply(service("me")))
    asyncio.run(writer.apply(service("me")))
    assert len(kube.writes) == 2
    asyncio.run(writer.apply(service("me")))
    assert len(kube.writes) == 2
    asyncio.run(writer.apply(service("me", tier="other")))
    assert len(kube.writes) == 3


def test_a_futile_write_is_tried_again_once_the_object_has_changed(kube, cache):
    writer = Writer(kube, cache, lambda: math.inf)
    for _ in range(2):
        asyncio.run(writer.apply(service("me")))
    edited = {**service("me", tier="other"), "spec": {"type": "ClusterIP"}}
    cache.put(SERVICES, kube.put(edited))
    asyncio.run(writer.apply(service("me")))
    assert len(kube.writes) == 3


def test_two_writes_that_change_nothing_do_not_send_each_other_again(kube, cache):
    """A server that knows neither a field of the spec nor one of the status."""
    writer = Writer(kube, cache, lambda: math.inf)
    live = asyncio.run(writer.apply(service("me")))
    for _ in range(3):
        live = asyncio.run(writer.apply(service("me")))
        live = asyncio.run(writer.patch(live, {"spec": {}}))
    assert kube.writes == ["apply services/chat"] * 2 + ["patch services/chat"]


@pytest.mark.parametrize("by", ["an-event", "a-list", "its-api"])
def test_nothing_is_kept_of_what_others_deleted(kube, cache, by):
    writer = Writer(kube, cache, lambda: math.inf)
    for _ in range(2):
        live = asyncio.run(writer.apply(service("me")))
    kube.vanish(live)
    if by == "an-event":
        cache.remove(SERVICES, live)
    elif by == "a-list":
        cache.drop(SERVICES, {live["metadata"]["uid"]})
    else:
        cache.clear(SERVICES)
    assert not cache.stores[SERVICES]._futile
    asyncio.run(writer.apply(service("me")))
    assert len(kube.writes) == 3


def test_nothing_is_kept_of_what_went_while_a_write_was_being_answered(kube, cache, monkeypatch):
    writer = Writer(kube, cache, lambda: math.inf)
    live = asyncio.run(writer.apply(service("me")))
    answer = kube.patch

    async def goes(*arguments):
        answered = await answer(*arguments)
        cache.remove(SERVICES, live)
        return answered

    monkeypatch.setattr(kube, "patch", goes)
    asyncio.run(writer.patch(live, {"spec": {}}))
    assert not cache.stores[SERVICES]._futile


def test_writes_without_effect_are_remembered_a_few_at_a_time(kube, cache):
    writer = Writer(kube, cache, lambda: math.inf)
    live = asyncio.run(writer.apply(service("me")))
    for number in range(100):
        asyncio.run(writer.patch(live, {"spec": {f"unknown{number}": None}}))
    [(_, writes)] = cache.stores[SERVICES]._futile.values()
    assert len(writes) == 4


class SlowServer:
    """Thinks about each write, as an API server does that waits for a webhook."""

    def __init__(self) -> None:
        self.limits: list[str] = []
        self.given_up: list[str] = []

    async def think(self, request):
        self.limits.append(request.query["timeout"])
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.given_up.append(request.method)
            raise

    async def served_to(self, writes, lead_seconds, settings):
        """Have ``writes`` made with so much of the Lease left, one after another."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.think)
        runner = web.AppRunner(application, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        client = ApiClient(Configuration(host=f"http://{host}:{port}"))
        kube = ApiKube(client, settings, Metrics().requests)
        try:
            for write in writes(Writer(kube, Cache(), lambda: lead_seconds)):
                with pytest.raises(Unreachable):
                    await write
        finally:
            await kube.close()
            await runner.cleanup()


@pytest.mark.parametrize(
    ("lead_seconds", "settings"),
    [(1.0, Settings()), (math.inf, Settings(request_timeout_seconds=1.0))],
    ids=["with-a-lease", "alone"],
)
def test_a_write_is_not_waited_for_longer_than_we_lead(lead_seconds, settings):
    """Nor does the API server go on with it, which may not see that we have hung up."""
    server = SlowServer()
    known = service("me")
    known["metadata"] |= {"uid": "1", "resourceVersion": "1"}

    def writes(writer):
        return writer.patch(known, {"spec": {}}), writer.delete(known), writer.create(service("me"))

    asyncio.run(server.served_to(writes, lead_seconds, settings))
    assert server.limits == ["1000ms"] * 3
    assert server.given_up == ["PATCH", "DELETE", "POST"]
