"""The work queue: each key once, serially, and later after failures."""

from __future__ import annotations

import asyncio

from poolwise.cluster.queue import WorkQueue


def queue(**options) -> WorkQueue[str]:
    return WorkQueue(
        **{"retry_seconds": 0.01, "retry_limit_seconds": 0.04, "jitter": lambda: 1.0, **options}
    )


def run(scenario):
    return asyncio.run(scenario())


def test_a_key_added_twice_waits_once():
    async def scenario():
        keys = queue()
        keys.add("a")
        keys.add("b")
        keys.add("a")
        return [await keys.get(), await keys.get()], len(keys)

    assert run(scenario) == (["a", "b"], 0)


def test_a_key_added_while_it_is_worked_on_runs_again_and_not_beside_itself():
    async def scenario():
        keys = queue()
        keys.add("a")
        await keys.get()
        keys.add("a")
        keys.add("b")
        beside = await keys.get()
        keys.done("a")
        return beside, await keys.get(), keys.is_idle

    assert run(scenario) == ("b", "a", False)


def test_it_is_idle_once_everything_is_done():
    async def scenario():
        keys = queue()
        keys.add("a")
        keys.done(await keys.get())
        return keys.is_idle

    assert run(scenario)


def test_failures_double_the_delay_up_to_the_limit_and_success_forgives():
    async def scenario():
        keys = queue()
        delays = [keys.backoff_seconds("a") for _ in range(4)]
        keys.forgive("a")
        return [*delays, keys.backoff_seconds("a")]

    assert run(scenario) == [0.01, 0.02, 0.04, 0.04, 0.01]


def test_the_server_may_ask_for_a_longer_delay():
    async def scenario():
        keys = queue()
        keys.add_failed("a", at_least_seconds=60)
        keys.add_failed("b")
        return await keys.get(), len(keys)

    assert run(scenario) == ("b", 0)


def test_what_the_server_asks_for_is_never_made_shorter():
    async def scenario():
        keys = queue(jitter=lambda: 0.8)
        started = asyncio.get_running_loop().time()
        keys.add_failed("a", at_least_seconds=0.1)
        await keys.get()
        return asyncio.get_running_loop().time() - started

    assert run(scenario) >= 0.099


def test_of_two_delays_the_shorter_holds():
    async def scenario():
        keys = queue()
        keys.add_after("a", 60)
        keys.add_after("a", 0.001)
        keys.add_after("a", 60)
        return await keys.get()

    assert run(scenario) == "a"


def test_a_full_queue_lets_others_have_their_turn():
    """Nothing else of the process may wait until all of thousands of keys are done."""
    turns = 0

    async def somebody_else():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work():
        keys = queue()
        other = asyncio.create_task(somebody_else())
        for number in range(10):
            keys.add(str(number))
        while not keys.is_idle:
            keys.done(await keys.get())
        other.cancel()

    run(work)
    assert turns >= 10
