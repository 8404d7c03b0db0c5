"""The clock. Only the shell reads it; decisions get ``now`` as an argument."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)
