"""Garbage is collected between planning passes."""

import asyncio
import gc
import itertools
import weakref

import pytest

from poolwise.handlers import garbage


class Cycle:
    """What only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before():
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_is_known_is_set_apart_and_no_full_collection_comes_by_itself():
    kept = [Cycle() for _ in range(1000)]
    garbage.settle()
    before = gc.get_stats()[2]["collections"]
    grown = [Cycle() for _ in range(200_000)]
    assert gc.get_stats()[2]["collections"] == before
    assert gc.get_freeze_count() > len(kept)
    assert gc.get_stats()[1]["collections"] > 0 and grown


def test_all_garbage_goes_once_no_pass_is_under_way(monkeypatch):
    monkeypatch.setattr(garbage, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(garbage, "RETRY_SECONDS", 0.01)
    answers, seen, others = [True, True, False], list[bool](), list[int]()
    garbage.settle()
    lost = Cycle()
    gc.collect(1)  # old by now: only a full collection finds it
    alive = weakref.ref(lost)
    del lost

    turns = itertools.count()

    def is_planning() -> bool:
        seen.append(alive() is not None)
        others.append(next(turns))
        return answers.pop(0) if answers else False

    async def work() -> None:
        task = asyncio.create_task(garbage.collect(is_planning))
        while alive() is not None:
            next(turns)
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(asyncio.wait_for(work(), 10.0))
    assert seen[:3] == [True, True, True]
    assert others[2] - others[0] > 2, "who waits for a pass lets the pass go on"
