"""How far a growth of what arrives goes on.

Over the next start arrivals are foreseen to grow by what they grew by over the last one, times the
slope of the regression of the one on the other: a trend that is damped as far as those of this
service were (Gardner and McKenzie, Management Science 31(10), 1985). The slope is 1 where load
rises and falls for longer than a start takes, and 0 where it jumps or comes and goes by chance. It
begins at 0, and falls teach as much of rises as rises do.
"""

from __future__ import annotations

from dataclasses import dataclass

HALF_LIFE_SECONDS = 5400.0
PRIOR_SQUARES = 0.2
"""That the slope of 0 counts as: twenty starts, over each of which arrivals grew by a tenth and
then no further. With 0.1 first jumps are taken for rises (a square wave takes 3 % more replicas),
with 0.4 the first rise is learned too late (half a point)."""
MOST_GROWTH = 0.5
"""ln(rate / rate before) that goes on: what grows by more within a start may be a jump."""


@dataclass(frozen=True, slots=True)
class Momentum:
    """Fading sums over growths of ln(arrivals) and those of the time as long after them."""

    products: float = 0.0
    squares: float = 0.0

    def after(self, before: float, then: float, seconds: float, span_seconds: float) -> Momentum:
        """One look later, ``seconds`` after the last: over ``span_seconds`` arrivals grew by the
        first, and over as long again by the second. Looks within one span tell the same growth."""
        kept, weight = 0.5 ** (seconds / HALF_LIFE_SECONDS), seconds / span_seconds
        return Momentum(
            kept * self.products + weight * before * then,
            kept * self.squares + weight * before * before,
        )

    @property
    def slope(self) -> float:
        """Of the growth that follows, 0 to 1."""
        return min(max(self.products / (self.squares + PRIOR_SQUARES), 0.0), 1.0)

    def following(self, growth: float) -> float:
        """The growth that is expected after this one; both of ln(arrivals), over a start."""
        return self.slope * min(max(growth, -MOST_GROWTH), MOST_GROWTH)
