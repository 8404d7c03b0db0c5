"""What the lack of a number means: nothing to do, nothing known, or a broken source.

Treating the three alike is how autoscalers shrink a service whose metrics are gone. Idle may
shrink; unknown holds; broken holds and says so.
"""

from __future__ import annotations

import enum


class State(enum.StrEnum):
    """What is known of the load of a service."""

    LIVE = "Live"
    """Requests arrive or are served, and every replica tells of them."""
    IDLE = "Idle"
    """Every replica was read, and no counter moved, nothing runs, nothing waits."""
    UNKNOWN = "Unknown"
    """No replica was looked at twice yet."""
    BROKEN = "Broken"
    """A replica that should tell could not be read, or told nonsense."""
