"""How fast workloads run that no table knows: from datasheets at first, then from what was seen.

:class:`Rates` keeps what was measured and answers for every pool, size and closeness;
:class:`Paces` are those of the cluster's runs, and :class:`Undescribed` what a plan takes of them.
What was measured of workloads that the model knows is in :mod:`poolwise.plan.learning.corrections`.
"""

from poolwise.plan.learning.rates import Place, PoolSpec, Rates
from poolwise.plan.learning.undescribed import (
    Accelerators,
    Pace,
    Paces,
    Rated,
    Undescribed,
    is_undescribed,
)

__all__ = [
    "Accelerators",
    "Pace",
    "Paces",
    "Place",
    "PoolSpec",
    "Rated",
    "Rates",
    "Undescribed",
    "is_undescribed",
]
