"""Who comes late and wants little does not wait for who came first and wants a lot."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.cluster.turns import Turns

Log = list[str]


async def use(turns: Turns, name: str, log: Log, until: asyncio.Event) -> None:
    async with turns.turn(name):
        log.append(name)
        await until.wait()


async def pause() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_no_more_than_so_many_at_once_and_all_in_the_end():
    async def run() -> None:
        turns, log, until = Turns(3), Log(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(10):
                tasks.create_task(use(turns, "one", log, until))
            await pause()
            assert len(log) == 3
            until.set()
        assert len(log) == 10
        assert not turns._parties and turns._free == 3

    asyncio.run(run())


def test_a_turn_that_gets_free_goes_to_who_holds_fewest():
    async def run() -> None:
        turns, log, until, first = Turns(2), Log(), asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(use(turns, "many", log, first))
            for _ in range(50):
                tasks.create_task(use(turns, "many", log, until))
            await pause()
            tasks.create_task(use(turns, "few", log, until))
            await pause()
            assert log == ["many", "many"]
            first.set()
            await pause()
            assert log == ["many", "many", "few"]
            until.set()

    asyncio.run(run())


def test_of_those_that_hold_as_many_it_goes_to_who_had_none_for_longest():
    async def run() -> None:
        turns, log, until = Turns(1), Log(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for name in ("one", "one", "one", "other", "other"):
                tasks.create_task(use(turns, name, log, until))
            await pause()
            until.set()
        assert log == ["one", "other", "one", "other", "one"]

    asyncio.run(run())


@pytest.mark.parametrize("has_its_turn", [False, True])
def test_who_gives_up_while_waiting_takes_no_turn_along(has_its_turn):
    async def run() -> None:
        turns, log, until = Turns(1), Log(), asyncio.Event()
        holder = asyncio.create_task(use(turns, "one", log, until))
        await pause()
        waiter = asyncio.create_task(use(turns, "other", log, until))
        await pause()
        if has_its_turn:
            holder.cancel()
            await asyncio.sleep(0)
        waiter.cancel()
        await pause()
        until.set()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        assert waiter.cancelled() and log == ["one"]
        assert not turns._parties and turns._free == 1

    asyncio.run(run())
