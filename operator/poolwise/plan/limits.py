"""What is the same of money: a limit that just pays does so whatever the last digits of a price."""

from __future__ import annotations

SLACK = 1e-6
"""Relative; three times $0.10 is more than $0.30 in binary fractions."""
AS_CHEAP = 0.02
"""Relative. Runs whose costs (or joules) differ by less cost the same, and the faster is taken:
nobody waits four times as long to save a tenth of a per cent."""


def as_cheap_as(least: float) -> float:
    """The most that costs the same."""
    return least * (1.0 + AS_CHEAP)


def pays(limit: float, cost: float) -> bool:
    """Whether a limit is as much as a cost.

    >>> pays(0.3, 3 * 0.1), pays(0.3, 0.31)
    (True, False)
    """
    return cost <= limit * (1.0 + SLACK)
