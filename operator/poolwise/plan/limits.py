"""Limits on money: one that just pays does so whatever the last digits of a price are."""

from __future__ import annotations

SLACK = 1e-6
"""Relative; three times $0.10 is more than $0.30 in binary fractions."""


def pays(limit: float, cost: float) -> bool:
    """Whether a limit is as much as a cost.

    >>> pays(0.3, 3 * 0.1), pays(0.3, 0.31)
    (True, False)
    """
    return cost <= limit * (1.0 + SLACK)
