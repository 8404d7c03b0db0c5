"""Before a process leads, and after: a standby knows the cluster and notes nothing beside it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

from poolwise.cluster.connection import Connection
from poolwise.cluster.patience import Patience
from poolwise.cluster.resources import NODES, TRAINING_JOBS, WATCHED
from poolwise.errors import Unavailable
from poolwise.handlers.decider import decider
from poolwise.handlers.operator import Operator
from poolwise.settings import Settings
from tests.fake_kube import FakeKube
from tests.handlers.shell import h100_node, training_job

SETTINGS = Settings(lease_namespace="default")
BEGUN = {"planner", "resync", "scaling", "measuring", "worker-0"}


def test_what_was_seen_before_is_looked_at_once_it_leads():
    kube: Any = FakeKube()
    operator = Operator(Connection(SETTINGS), SETTINGS, decider(SETTINGS))
    lease = operator._assemble(kube)
    kube.watcher = lambda change, resource, document: (
        operator.see(resource, change, document) if resource in WATCHED else None
    )
    listeners: list[object] = []
    apis: Any = SimpleNamespace(listen=listeners.append)

    async def told(name, leads):
        """Poolwise has a word on that job."""
        while not any(
            each["metadata"]["name"] == name and each.get("status")
            for each in kube.all(TRAINING_JOBS)
        ):
            assert not leads.done(), leads
            await asyncio.sleep(0.01)

    async def scenario():
        kube.put(h100_node())
        kube.put(training_job("a", "before", 8))
        planner = operator._engine.planner
        noted = planner.is_wanted, set(planner._touched)
        leads = asyncio.create_task(operator._lead(lease, apis))
        await told("before", leads)
        assert {each.get_name() for each in asyncio.all_tasks()} >= BEGUN
        kube.put(training_job("a", "after", 8))
        await told("after", leads)
        leads.cancel()
        await asyncio.gather(leads, return_exceptions=True)
        await operator._engine.scraper.close()
        return noted

    assert asyncio.run(scenario()) == (False, set())
    assert listeners == [operator._engine]


def test_who_lost_the_lease_begins_nothing_more():
    """kopf takes seconds to end, in which each write would fail and be told of."""
    operator = Operator(Connection(SETTINGS), SETTINGS, decider(SETTINGS))
    kube: Any = FakeKube()
    apis: Any = SimpleNamespace(listen=Mock())
    operator._assemble(kube)

    async def scenario():
        lost = asyncio.Event()
        lease: Any = SimpleNamespace(acquire=AsyncMock(), hold=lost.wait)
        leads = asyncio.create_task(operator._lead(lease, apis))
        while (engine := _task("engine")) is None:
            await asyncio.sleep(0)
        lost.set()
        await asyncio.wait([engine], timeout=10)
        has_ended = engine.done()
        leads.cancel()
        await asyncio.gather(leads, return_exceptions=True)
        await operator._engine.scraper.close()
        return has_ended and operator.stop_flag.is_set()

    assert asyncio.run(scenario())
    assert str(operator.failure) == "the Lease was lost"


def test_what_vanished_is_dropped_once_it_can_be_listed_again(monkeypatch):
    """kopf lists after a watch that grew too old, and the server may be too busy for one more."""
    monkeypatch.setattr("poolwise.handlers.operator._RELIST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(Patience, "__iter__", lambda self: iter([0.0] * 5))
    operator = Operator(Connection(SETTINGS), SETTINGS, decider(SETTINGS))
    kube: Any = FakeKube()
    node = kube.put(h100_node())
    operator._cache.put(NODES, node)
    kube.vanish(node)
    pages, errors = kube.pages, [Unavailable("429"), Unavailable("429")]

    async def busy(*of, **how):
        if errors:
            raise errors.pop()
        async for page in pages(*of, **how):
            yield page

    kube.pages = busy
    operator._freshness._listed.add(NODES)

    async def scenario():
        relists = asyncio.create_task(operator._relist(kube))
        async with asyncio.timeout(30):
            while len(operator._cache.stores[NODES]):
                assert not relists.done(), relists
                await asyncio.sleep(0)
        relists.cancel()
        await asyncio.gather(relists, return_exceptions=True)

    asyncio.run(scenario())


def _task(name: str) -> asyncio.Task[None] | None:
    return next((each for each in asyncio.all_tasks() if each.get_name() == name), None)
