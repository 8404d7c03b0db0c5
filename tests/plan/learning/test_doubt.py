"""What of a covariance is each one's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.learning.doubt import own_spreads


@given(st.lists(st.floats(0.0, 3.0), min_size=3, max_size=8), st.floats(0.0, 25.0))
def test_what_all_share_is_nobodys_own(own: list[float], shared: float) -> None:
    covariance = np.diag(np.square(own)) + shared
    assert own_spreads(covariance) == pytest.approx(own, abs=1e-5)


def test_two_share_their_difference_and_one_has_all() -> None:
    first, second = own_spreads(np.array([[1.09, 1.0], [1.0, 1.16]]))
    assert first == second == pytest.approx(0.25**0.5 / 2**0.5)
    assert own_spreads(np.array([[0.04]])) == pytest.approx([0.2])
