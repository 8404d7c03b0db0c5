"""Collections of garbage: the full ones between planning passes, never in the middle of one.

A pass remembers thousands of predictions. Python walks all of them, for a tenth of a second, each
time that they have grown by a quarter, and that is always while a pass makes more of them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

INTERVAL_SECONDS = 60.0
RETRY_SECONDS = 0.05
NEVER = 2**31 - 1
"""Collections of younger objects before a full one comes by itself."""


def settle() -> None:
    """Set apart what is known by now, such as a large cluster, which no collection walks from then
    on; and leave full collections to :func:`collect`."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


async def collect(is_planning: Callable[[], bool]) -> None:
    """All garbage, again and again, for ever."""
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        while is_planning():
            await asyncio.sleep(RETRY_SECONDS)
        gc.collect()
