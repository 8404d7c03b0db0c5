"""What these tests share."""

from __future__ import annotations

import io

import pytest
import structlog

from poolwise.cluster import logs


@pytest.fixture
def log():
    """What was logged."""
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    structlog.reset_defaults()
