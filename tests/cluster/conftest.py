"""What these tests share."""

from __future__ import annotations

import asyncio
import io

import pytest
import structlog

from poolwise.cluster import logs


@pytest.fixture
def rests(monkeypatch):
    """How long each pause was; none takes any time."""
    found = []

    async def sleep(seconds):
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
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
