from __future__ import annotations

import numpy as np
import pytest

from bench.accuracy import accuracy, fold_of


def test_errors_are_in_percent_of_the_measurement() -> None:
    found = accuracy(np.array([110.0, 90.0, 100.0]), np.array([100.0, 100.0, 200.0]))
    assert found.mdape == pytest.approx(10)
    assert found.mape == pytest.approx((10 + 10 + 50) / 3)
    assert found.bias == pytest.approx(-10)


def test_folds_are_the_same_everywhere() -> None:
    assert [fold_of(group) for group in ("a", "b", "mlperf|bert")] == [2, 1, 4]
