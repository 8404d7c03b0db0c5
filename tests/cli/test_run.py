"""What the operator's process tells of its own end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from poolwise.cli.run import at_the_end


async def stream() -> AsyncIterator[int]:
    """As kopf's, which it leaves open when it is cancelled amid an event."""
    yield 1


def test_a_stream_that_is_left_open_is_no_error_at_the_end(caplog):
    """As the loop tells of it at its own end, if it happens to close the inner generator first."""

    async def end() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(at_the_end)
        told = "an error occurred during closing of asynchronous generator"
        error = RuntimeError("generator didn't stop after athrow()")
        loop.call_exception_handler({"message": told, "exception": error, "asyncgen": stream()})

    asyncio.run(end())
    assert not caplog.records


def test_other_errors_are_told_to_the_end(caplog):
    async def end() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(at_the_end)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    asyncio.run(end())
    assert "ZeroDivisionError" in caplog.text
