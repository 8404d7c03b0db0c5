"""How much one look counts: as the time since the last one, whoever sets how often there is one.

Looks that are closer together tell no more of the same minutes.
"""

from __future__ import annotations

USUAL_SECONDS = 15.0
"""Between two looks; constants that count steps were taken with it."""


def steps(seconds: float) -> float:
    """How many usual ones so long a one counts as."""
    return seconds / USUAL_SECONDS
