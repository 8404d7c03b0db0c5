"""What these tests share."""

from __future__ import annotations

import asyncio
import io

import pytest
import structlog

from poolwise.cluster import logs


@pytest.fixture
def at_each_rest(monkeypatch):
    """Have something done with the seconds of each pause; none takes any time."""

    def have(done):
        async def sleep(seconds):
            done(seconds)

        monkeypatch.setattr(asyncio, "sleep", sleep)

    return have


@pytest.fixture
def rests(at_each_rest):
    """How long each pause was."""
    found = list[float]()
    at_each_rest(found.append)
    return found


@pytest.fixture
def log():
    """What was logged."""
    stream = io.StringIO()
    logs.configure("info", stream)
    # Else loggers of modules keep this stream, and whoever captures their words later gets none.
    structlog.configure(**structlog.get_config() | {"cache_logger_on_first_use": False})
    yield stream
    structlog.reset_defaults()
