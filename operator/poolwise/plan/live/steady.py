"""Which figures of ``status.scaling`` are new enough to be written.

The controller looks each few seconds; a status that followed it would be written for ever. What was
told stands while the number of replicas and all that holds it back are the same and no figure has
moved by more than a fifth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from poolwise.plan.live.mixture import numbers
from poolwise.plan.reading import Told, moment_of

TOLERANCE = 0.2
"""Relative, of any figure before it is told anew."""
LEAST_FIGURE = 0.005
"""Differences below are none, whatever they are relative to: of requests per second, of shares."""
REST_SECONDS = 60.0
"""What is no decision is told no more often."""
FIGURES_SECONDS = 300.0
"""Nor are figures that moved alone: under bursts some do with each look, and with them goes all
that was learned, up to 16 kB."""
REMEMBERED_SECONDS = 900.0
"""What was learned is told anew no less often, while there is traffic to learn from."""
_ASIDE = ("reason", "time", "memory")
_DECISIVE = ("mode", "desiredReplicas", "decisions", "mismatches")


def steady(before: Told, after: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """What was told, while it is about the same, or only figures moved a moment ago."""
    told_at = moment_of(before.get("time"))
    if told_at is None or any(before.get(name) != after.get(name) for name in _DECISIVE):
        return after
    if numbers(before) != numbers(after):
        return after
    age_seconds = (now - told_at).total_seconds()
    if 0.0 <= age_seconds < REST_SECONDS:  # less than none is another clock's, or was set back
        return before
    if age_seconds >= REMEMBERED_SECONDS and before.get("memory") != after.get("memory"):
        return after
    tolerance = math.inf if 0.0 <= age_seconds < FIGURES_SECONDS else TOLERANCE
    return before if _is_near(_figures(before), _figures(after), tolerance) else after


def _figures(told: Told) -> dict[str, Any]:
    """A sentence repeats figures that stand beside it, and a memory holds them all."""
    return {name: value for name, value in told.items() if name not in _ASIDE}


def _is_near(before: Any, after: Any, tolerance: float) -> bool:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if before.keys() != after.keys():
            return False
        return all(_is_near(before[name], after[name], tolerance) for name in before)
    if _is_list(before) and _is_list(after):
        return len(before) == len(after) and all(
            map(_is_near, before, after, itertools.repeat(tolerance))
        )
    if _is_figure(before) and _is_figure(after):
        limit = max(tolerance * max(abs(before), abs(after), LEAST_FIGURE), LEAST_FIGURE)
        return bool(abs(before - after) <= limit)
    return bool(before == after)


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
