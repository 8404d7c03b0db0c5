"""What the operator's process tells of its own end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from poolwise.cli.run import at_the_end


@contextlib.asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """As kopf waits beside a stream for the moment to pause it."""
    waiter = asyncio.create_task(asyncio.sleep(60))
    try:
        yield
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            waiter.cancel()
            await waiter


async def stream() -> AsyncIterator[int]:
    """As kopf's, which it leaves open when it is cancelled amid an event."""
    async with waiting():
        yield 1


async def end_amid_an_event(handler) -> AsyncIterator[int]:
    opened = stream()
    await anext(opened)
    asyncio.get_running_loop().set_exception_handler(handler)
    return opened


@pytest.mark.parametrize(("handler", "told"), [(None, 1), (at_the_end, 0)], ids=["python", "ours"])
def test_a_stream_that_is_left_open_is_no_error_at_the_end(caplog, handler, told):
    asyncio.run(end_amid_an_event(handler))
    assert len(caplog.records) == told, caplog.text


def test_other_errors_are_told_to_the_end(caplog):
    async def end() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(at_the_end)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    asyncio.run(end())
    assert "ZeroDivisionError" in caplog.text
