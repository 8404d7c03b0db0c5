"""Loops that look at all workloads of a kind, again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import structlog

from poolwise.plan.decision import Key

_log = structlog.get_logger(__name__)

LEAST_REST_SECONDS = 0.1


async def rounds(step: Callable[[], Awaitable[None]], interval_seconds: float, what: str) -> None:
    """Round after round, for ever: one that fails is logged, and tried again with the next."""
    while True:
        started = time.monotonic()
        try:
            await step()
        except Exception:
            _log.exception(f"a round of {what} failed; tried again with the next")
        spent = time.monotonic() - started
        await asyncio.sleep(max(interval_seconds - spent, LEAST_REST_SECONDS))


def forget(everything: Collection[dict[Key, Any]], present: Collection[Key]) -> set[Key]:
    """What is known of workloads that are no longer looked at; whose that was."""
    gone = {key for known in everything for key in known if key not in present}
    for known in everything:
        for key in gone & known.keys():
            del known[key]
    return gone
