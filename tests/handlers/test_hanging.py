"""A loop that hangs tells of no error: the age of what it has under way does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from poolwise.plan.children.metadata import key_of
from poolwise.plan.observed import Decisions, Observed
from tests.handlers.shell import Shell, chat_service, h100_node

SERVICE = chat_service("a", "chat")
BEGUN = {
    "planning": lambda engine: engine.planner.plan(),
    "writing": lambda engine: engine._work_once(),
    "scaling": lambda engine: engine.scaler.step(),
    "gateways": lambda engine: engine.scaler.watch(),
    "measuring": lambda engine: engine.measurer.step(),
}


def hanging_loops(shell: Shell) -> set[str]:
    families = shell.metrics.registry.collect()
    [told] = [each for each in families if each.name == "poolwise_longest_running_seconds"]
    assert {sample.labels["loop"] for sample in told.samples} == set(BEGUN)
    return {sample.labels["loop"] for sample in told.samples if sample.value > 0.0}


@pytest.mark.parametrize("loop", BEGUN)
def test_each_loop_tells_how_long_it_has_been_at_it(loop, monkeypatch):
    shell = Shell()
    node = h100_node()
    shell.put(node, SERVICE)
    shell.run(lambda: shell.start_pods(node["metadata"]["name"]))

    async def run() -> None:
        engine = await shell._start()
        await engine.settle()
        assert hanging_loops(shell) == set()
        begun, released = asyncio.Event(), threading.Event()

        async def never(_: object) -> None:
            begun.set()
            await asyncio.get_running_loop().create_future()

        running = asyncio.get_running_loop()

        def decide(_: Observed) -> Decisions:
            running.call_soon_threadsafe(begun.set)
            released.wait()
            return Decisions((), {})

        for of, name in ((engine.scaler, "_source"), (engine.measurer, "_source")):
            monkeypatch.setattr(of, name, never)
        monkeypatch.setattr(engine._reconciler, "reconcile", never)
        monkeypatch.setattr(engine.planner, "_decide", decide)
        engine.scaler._vigil.watched[key_of(SERVICE)] = ()
        engine._queue.add(key_of(SERVICE))
        work = asyncio.create_task(BEGUN[loop](engine))
        await begun.wait()
        assert hanging_loops(shell) == {loop}
        work.cancel()
        released.set()
        await asyncio.wait([work])
        assert hanging_loops(shell) == set()

    asyncio.run(run())
