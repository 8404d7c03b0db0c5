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
    # Loggers of modules outlive a configuration that lets them keep it.
    structlog.configure(**structlog.get_config() | {"cache_logger_on_first_use": False})
    yield stream
    structlog.reset_defaults()
