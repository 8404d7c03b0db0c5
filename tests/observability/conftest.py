"""promtool, which checks and runs rules as Prometheus does."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.tools.build import binaries
from e2e.tools.catalog import PROMTOOL


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Built once if it is missing."""
    return binaries((PROMTOOL,))["promtool"]
