"""Looks at the queues before services that sleep: who is woken, and who is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from poolwise.cluster.scraping import Reply, Target
from poolwise.handlers.vigil import Vigil
from poolwise.plan.decision import Key, Kind
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.signals.adapters import Fault

CHAT = Key(Kind.INFERENCE_SERVICE, "a", "chat")
PICKER = Target("uid", "epp-0", "127.0.0.2", 9090, "epp")


def told(queues: Mapping[str, float]) -> PickerTold:
    return PickerTold("epp-0", 0.0, True, queues)


def woken(look: Reply, wakes_meanwhile: bool = False) -> list[Key]:
    """By one look; meanwhile somebody else may wake it."""
    found: list[Key] = []

    async def source(_: object) -> Mapping[Target, Reply]:
        if wakes_meanwhile:
            vigil.watched.clear()
        return {PICKER: look}

    async def look_once() -> None:
        async with asyncio.TaskGroup() as tasks:
            vigil.begin(tasks)

    vigil = Vigil(source, lambda key, _: found.append(key))
    vigil.watched[CHAT] = (PICKER,)
    asyncio.run(look_once())
    return found


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        pytest.param(told({"chat": 1.0}), [CHAT], id="a request"),
        pytest.param(told({"chat": 0.0}), [], id="an empty queue"),
        pytest.param(told({}), [], id="no queue"),
        pytest.param(Fault("answers HTML"), [], id="nothing that can be read"),
    ],
)
def test_a_request_that_is_held_wakes_a_sleeper_and_nothing_else_does(
    look: Reply, expected: list[Key]
) -> None:
    assert woken(look) == expected


def test_who_was_woken_while_its_gateway_was_asked_is_not_woken_again() -> None:
    assert woken(told({"chat": 1.0}), wakes_meanwhile=True) == []
