"""Logs of these tests go where the operator's go, as JSON, and are not printed."""

from __future__ import annotations

import io

import pytest
import structlog

from poolwise.cluster import logs


@pytest.fixture(scope="package", autouse=True)
def log():
    """What was logged."""
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    structlog.reset_defaults()
