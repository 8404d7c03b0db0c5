"""The played torchrun: ranks and a store that meet over TCP, in one event loop."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from e2e.controlplane import ports
from e2e.images.rendezvous.rank import Rank, RendezvousFailed
from e2e.images.rendezvous.settings import Settings, from_environment
from e2e.images.rendezvous.store import Store


def fast(world_size: int, **changes: object) -> Settings:
    """Settings for ranks inside one process, on a free port of this machine."""
    (port,) = ports.free(1)
    settings = from_environment(
        {
            "PET_NPROC_PER_NODE": str(world_size),
            "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
            "E2E_RENDEZVOUS_TIMEOUT_SECONDS": "60",
        }
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


async def both(settings: Settings, *ranks: Rank) -> list[dict[str, object]]:
    async with Store(settings, "127.0.0.1"):
        return list(await asyncio.gather(*(rank.run() for rank in ranks)))


def test_ranks_meet_and_take_their_steps_together() -> None:
    settings = fast(3, run_seconds=0.05, step_seconds=0.01)
    ranks = [Rank(settings, number, host=f"host-{number}") for number in range(3)]
    results = asyncio.run(both(settings, *ranks))
    assert [result["ranks"] for result in results] == [[0, 1, 2]] * 3
    assert results[0]["hosts"] == {"0": "host-0", "1": "host-1", "2": "host-2"}
    assert [rank.steps_done for rank in ranks] == [5, 5, 5]


def test_ranks_that_come_before_the_store_wait_for_it() -> None:
    async def late_store() -> dict[str, object]:
        settings = fast(1)
        rank = Rank(settings, 0)
        early = asyncio.create_task(rank.run())
        while not rank._last_error:
            await asyncio.sleep(0.01)
        async with Store(settings, "127.0.0.1"):
            return await early

    assert asyncio.run(late_store())["ranks"] == [0]


def test_who_is_missing_is_said_at_the_end_of_the_time() -> None:
    settings = fast(4, timeout_seconds=3.0)
    with pytest.raises(RendezvousFailed) as raised:
        asyncio.run(both(settings, Rank(settings, 0)))
    assert str(raised.value) == "not all 4 ranks met within 3 s; missing: 1, 2, 3"


def test_a_store_that_is_nowhere_is_said_with_the_reason() -> None:
    settings = fast(2, timeout_seconds=0.1, host="nowhere.invalid")
    with pytest.raises(
        RendezvousFailed, match=r"^no rendezvous at nowhere.invalid:\d+ within 0.1 s"
    ):
        asyncio.run(Rank(settings, 1).run())


def test_a_lost_rank_is_replaced_and_the_run_goes_on() -> None:
    """The survivor joins the next round, and no step is taken twice."""

    async def replaced() -> tuple[Rank, Rank]:
        settings = fast(2, run_seconds=3600.0, step_seconds=0.01)
        survivor, first = Rank(settings, 0), Rank(settings, 1)
        async with Store(settings, "127.0.0.1"):
            running = asyncio.create_task(survivor.run())
            lost = asyncio.create_task(first.run())
            while first.steps_done < 3:
                await asyncio.sleep(0.01)
            lost.cancel()
            await asyncio.wait([lost])
            done = first.steps_done
            short = replace(settings, run_seconds=(done + 5) * settings.step_seconds)
            survivor.settings = short
            successor = Rank(short, 1)
            await asyncio.gather(running, successor.run())
        return survivor, successor

    survivor, successor = asyncio.run(replaced())
    assert (survivor.rounds, successor.rounds) == (2, 1)
    assert survivor.steps_done == successor.steps_done == survivor.settings.steps


def test_ranks_wait_for_a_store_that_comes_back() -> None:
    async def store_restarts() -> int:
        settings = fast(2, run_seconds=0.2, step_seconds=0.01)
        ranks = [Rank(settings, number) for number in range(2)]
        tasks = [asyncio.create_task(rank.run()) for rank in ranks]
        async with Store(settings, "127.0.0.1"):
            while ranks[1].steps_done < 3:
                await asyncio.sleep(0.001)
        async with Store(settings, "127.0.0.1"):
            await asyncio.gather(*tasks)
        return ranks[1].rounds

    assert asyncio.run(store_restarts()) == 2


def test_a_silent_holder_of_a_rank_gives_it_up() -> None:
    """A node that vanished sends no word of it: its connection is dropped when it falls silent."""

    async def silent() -> dict[str, object]:
        settings = fast(1, silence_seconds=0.3)
        async with Store(settings, "127.0.0.1"):
            reader, writer = await asyncio.open_connection(settings.host, settings.port)
            join = {"rank": 0, "world_size": 1, "host": "gone", "steps_done": 0}
            writer.write(json.dumps(join).encode() + b"\n")
            await reader.readline()
            result = await Rank(replace(settings, heartbeat_seconds=0.05), 0, host="new").run()
            writer.close()
            return result

    assert asyncio.run(silent())["hosts"] == {"0": "new"}
