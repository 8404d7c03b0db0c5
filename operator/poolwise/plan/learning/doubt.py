"""How much of the doubt about several pools is each one's own.

A comparison of two pools takes a and b, the deviations that they do not share, and is unsure by
``sqrt(a^2 + b^2)`` (:mod:`poolwise.model.ranges`). Beliefs of one workload in several pools come as
a covariance, most of which is the workload's own level and cancels. With V the covariance around
the mean of the n pools and ``S = sum(V) * n / (n - 1)`` over its diagonal::

    a(p)^2 = (V(p, p) - S / n^2) / (1 - 2 / n)

gives a back exactly where the covariance is what all share and a^2 on the diagonal.
"""

from __future__ import annotations

import numpy as np

from poolwise.plan.learning.kernel import Vector


def own_spreads(covariance: Vector) -> list[float]:
    """``a`` of each, of n x n covariances of logarithms; two share their difference evenly."""
    count = len(covariance)
    if count == 1:
        return [float(np.sqrt(max(covariance[0, 0], 0.0)))]
    centre = np.eye(count) - 1.0 / count
    around = np.diag(centre @ covariance @ centre)
    if count == 2:  # around holds a quarter of the variance of their difference, twice
        return [float(np.sqrt(max(2.0 * each, 0.0))) for each in around]
    total = around.sum() * count / (count - 1)
    variances = (around - total / count**2) / (1.0 - 2.0 / count)
    return [float(np.sqrt(max(each, 0.0))) for each in variances]
