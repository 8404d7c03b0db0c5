"""The allowance of late requests as a budget over hours: what was not spent may be.

Forecasts of how many will be late err on the safe side for one service and on the other for the
next. So the share that is aimed at is the allowed one times how many times more than came late
would have been allowed: a service that is hardly ever late runs fewer replicas, one that was late
too often more.
"""

from __future__ import annotations

from dataclasses import dataclass

HALF_LIFE_SECONDS = 3600.0
PRIOR_SECONDS, PRIOR_SPENT = 900.0, 0.7
"""Before anything is seen, so many seconds of requests count as having spent this share."""
KEPT_SHARE = 0.8
"""Of the allowance: what is aimed at, so that chance seldom exceeds it."""
LEAST_FACTOR, MOST_FACTOR = 0.75, 1.4
"""What was not spent is kept for the next jump, for the most part: spent on running close to the
edge it is gone when load steps up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Fading sums."""

    late: float = 0.0
    count: float = 0.0
    seconds: float = 0.0

    def after(self, late: float, count: float, seconds: float) -> Budget:
        """One step later."""
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        return Budget(
            kept * self.late + late, kept * self.count + count, kept * self.seconds + seconds
        )

    def late_share(self, allowed_share: float) -> float:
        """Of requests, with the prior."""
        rate = self.count / self.seconds if self.seconds > 0.0 else 0.0
        prior = max(rate * PRIOR_SECONDS, 1.0)
        late = max(self.late, 0.0) + prior * PRIOR_SPENT * allowed_share
        return late / (self.count + prior)

    def factor(self, allowed_share: float) -> float:
        """By which the share that is aimed at may differ from the allowed one."""
        spent = self.late_share(allowed_share) / (KEPT_SHARE * allowed_share)
        return min(max(1.0 / max(spent, 1e-9), LEAST_FACTOR), MOST_FACTOR)
