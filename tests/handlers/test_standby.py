"""A standby: it knows the cluster, and notes nothing beside it until it leads."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from poolwise.cluster.connection import Connection
from poolwise.cluster.resources import TRAINING_JOBS, WATCHED
from poolwise.handlers.decider import decider
from poolwise.handlers.operator import Operator
from poolwise.settings import Settings
from tests.fake_kube import FakeKube
from tests.handlers.shell import h100_node, training_job

SETTINGS = Settings(lease_namespace="default")


def test_what_was_seen_before_is_looked_at_once_it_leads():
    kube = FakeKube()
    operator = Operator(Connection(SETTINGS), SETTINGS, decider(SETTINGS))
    lease = operator._assemble(kube)
    kube.watcher = lambda change, resource, document: (
        operator.see(resource, change, document) if resource in WATCHED else None
    )
    listeners = []
    apis = SimpleNamespace(listen=listeners.append)

    async def told(name: str, leads: asyncio.Task[None]) -> None:
        """Poolwise has a word on that job."""
        while not any(
            each["metadata"]["name"] == name and each.get("status")
            for each in kube.all(TRAINING_JOBS)
        ):
            assert not leads.done(), leads
            await asyncio.sleep(0.01)

    async def scenario() -> tuple[bool, set[object]]:
        kube.put(h100_node())
        kube.put(training_job("a", "before", 8))
        planner = operator._engine.planner
        noted = planner.is_wanted, set(planner._touched)
        leads = asyncio.create_task(operator._lead(lease, apis))
        await told("before", leads)
        kube.put(training_job("a", "after", 8))
        await told("after", leads)
        leads.cancel()
        await asyncio.gather(leads, return_exceptions=True)
        await operator._engine.scraper.close()
        return noted

    assert asyncio.run(scenario()) == (False, set())
    assert listeners == [operator._engine]
