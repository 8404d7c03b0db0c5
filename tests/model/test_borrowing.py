"""What other pools tell of one: the law against the matrix that it is a shortcut of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.borrowing import prior
from poolwise.model.correction import BOUND, LASTING, Correction, Phase, Prior, Sample
from poolwise.model.ranges import OWN_SHARE

NOW = 1_795_000_000.0
P = LASTING[Phase.TRAINING]
COMMON = P * (1.0 - OWN_SHARE[Phase.TRAINING])

ratios = st.floats(0.7, 1.4)
counts = st.integers(1, 6)
pools = st.lists(st.tuples(ratios, counts), max_size=4)


def seen(ratio: float, count: int) -> Correction:
    return Correction(Phase.TRAINING).with_samples([Sample(NOW, ratio)] * count)


def by_matrix(own: tuple[float, int] | None, others: list[tuple[float, int]]):
    """Mean and variance of the pool's own error, given all measurements, as shares of s^2."""
    cells = [*([own] if own else []), *others]
    at = np.array([0.0 if own else 1.0, *([1.0] * (len(cells) - 1))])[: len(cells)]
    values = np.array([math.log(ratio) for ratio, _ in cells])
    noise = np.diag([(1.0 - P) / count for _, count in cells])
    size = len(cells)
    between = COMMON * np.ones((size, size)) + (P - COMMON) * np.eye(size) + noise
    towards = np.where(at == 0.0, P, COMMON)
    weights = np.linalg.solve(between, towards)
    return float(weights @ values), float(P - weights @ towards)


@given(st.none() | st.tuples(ratios, counts), pools)
def test_it_is_the_conditional_normal_distribution(own, others):
    before = prior([seen(*each) for each in others], Phase.TRAINING, NOW)
    found = (seen(*own) if own else Correction(Phase.TRAINING)).at(NOW, prior=before)
    mean, variance = by_matrix(own, others) if own or others else (0.0, P)
    most = math.log(BOUND)
    assert found.log_factor == pytest.approx(max(-most, min(most, mean)), abs=1e-9)
    assert found.narrowing == pytest.approx(math.sqrt(variance + 1.0 - P), abs=1e-9)


def test_others_count_less_than_its_own_and_more_together():
    def factor(*others: Correction) -> float:
        before = prior(others, Phase.TRAINING, NOW)
        return Correction(Phase.TRAINING).at(NOW, prior=before).factor

    one = factor(seen(1.4, 1))
    assert 1.0 < one < seen(1.4, 1).at(NOW).factor
    assert one < factor(seen(1.4, 5)) < factor(seen(1.4, 5), seen(1.4, 5)) < 1.4


def test_what_has_no_part_in_common_tells_nothing():
    others = [Correction(Phase.FIRST_TOKEN).with_samples([Sample(NOW, 1.9)] * 9)]
    found = prior(others, Phase.FIRST_TOKEN, NOW)
    assert found == Prior(variance=LASTING[Phase.FIRST_TOKEN])


def test_what_is_told_is_of_other_pools_until_it_has_its_own():
    before = prior([seen(1.3, 2), seen(1.3, 1)], Phase.TRAINING, NOW)
    told = Correction(Phase.TRAINING).at(NOW, prior=before).measured
    assert (told.samples, told.elsewhere) == (3, True)
    assert told.ratio == pytest.approx(1.3)
    own = seen(1.2, 1).at(NOW, prior=before).measured
    assert (own.samples, own.elsewhere) == (1, False)


def test_a_pool_that_measured_nothing_tells_nothing():
    silent = Correction(Phase.TRAINING)
    assert prior([silent], Phase.TRAINING, NOW) == Prior(variance=P)
    beside_another = prior([silent, seen(1.3, 1)], Phase.TRAINING, NOW)
    assert beside_another == prior([seen(1.3, 1)], Phase.TRAINING, NOW)


def test_what_is_told_is_the_median_of_the_pools_so_that_one_alone_does_not_shift_it():
    told = prior([seen(ratio, 1) for ratio in (1.1, 1.2, 2.0)], Phase.TRAINING, NOW).measured
    assert told is not None
    assert told.ratio == pytest.approx(1.2)
