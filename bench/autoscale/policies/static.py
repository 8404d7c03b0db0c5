"""Fleets that do not follow load: a number for good, or one for each hour of the schedule."""

from __future__ import annotations

from collections.abc import Sequence

from bench.autoscale.policy import View

HOUR_SECONDS = 3600.0


class Static:
    """The same number of replicas all the time. Tuned: the number (``best_static``)."""

    interval_seconds = 60.0

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas

    def desired(self, view: View) -> int:
        """The number."""
        return self._replicas


class Hourly:
    """A schedule with a number for each hour, made in hindsight. Tuned: its headroom.

    An hour's replicas are asked for one start ahead of it, as who writes a schedule would.
    """

    interval_seconds = 15.0

    def __init__(self, replicas_by_hour: Sequence[int]) -> None:
        self._replicas = tuple(replicas_by_hour)

    def desired(self, view: View) -> int:
        """The greater of this hour's number and that of the hour in which a start would end."""
        soon_seconds = view.now_seconds + view.start_delay_seconds + self.interval_seconds
        return max(self._of(view.now_seconds), self._of(soon_seconds))

    def _of(self, at_seconds: float) -> int:
        return self._replicas[min(int(at_seconds / HOUR_SECONDS), len(self._replicas) - 1)]
