"""How fast workloads run that no table knows: from datasheets at first, then from what was seen.

:class:`Rates` keeps what was measured and answers for every pool, size and closeness.
"""

from poolwise.plan.learning.rates import Place, PoolSpec, Rates

__all__ = ["Place", "PoolSpec", "Rates"]
