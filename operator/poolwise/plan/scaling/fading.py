"""Figures of which the newest look counts most."""

from __future__ import annotations


def blended(before: float | None, now: float, kept: float) -> float:
    """A figure that fades: so much is kept of what it was before, where that is known."""
    return now if before is None else kept * before + (1.0 - kept) * now
