"""PromQL's arithmetic, as Prometheus does it."""

import math

import pytest

from bench.autoscale.policies import promql
from bench.autoscale.policies.history import History
from poolwise.plan.signals.sample import Sample
from tests.bench.autoscale_views import histogram, view


def test_a_quantile_is_linear_within_its_bucket():
    # 10 below 1, 30 more in (1, 2.5], 60 in (2.5, 5]: rank 90 is 50/60 into the last
    bounds = (1.0, 2.5, 5.0, math.inf)
    found = promql.histogram_quantile(0.9, bounds, (10.0, 40.0, 100.0, 100.0))
    assert found == pytest.approx(2.5 + 2.5 * 50 / 60)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((100.0, 100.0, 100.0), 0.9), ((0.0, 5.0, 100.0), 2.5)],
    ids=["the first bucket begins at 0", "beyond the last bound: that bound"],
)
def test_a_quantile_at_the_ends(counts, expected):
    assert promql.histogram_quantile(0.9, (1.0, 2.5, math.inf), counts) == pytest.approx(expected)


def test_a_quantile_of_nothing_is_nan():
    assert math.isnan(promql.histogram_quantile(0.9, (1.0, math.inf), (0.0, 0.0)))


def test_an_increase_reaches_to_near_ends_of_its_window():
    # 4 samples 15 s apart from 5 to 50; both ends of (0, 60] are within 1.1 mean gaps
    found = promql.increase([5.0, 20.0, 35.0, 50.0], [100.0, 110.0, 120.0, 130.0], 0.0, 60.0)
    assert found == pytest.approx(30.0 * (45.0 + 5.0 + 10.0) / 45.0)


def test_an_increase_does_not_reach_to_far_ends():
    found = promql.increase([30.0, 45.0], [100.0, 110.0], 0.0, 60.0)
    assert found == pytest.approx(10.0 * (15.0 + 7.5 + 15.0) / 15.0)


def test_a_counter_that_began_in_the_window_is_not_taken_below_zero():
    found = promql.increase([10.0, 20.0], [0.0, 10.0], 0.0, 20.0)
    assert found == pytest.approx(10.0)


def test_a_reset_counts_what_came_after_it():
    found = promql.increase([0.0, 10.0, 20.0], [90.0, 100.0, 5.0], 0.0, 20.0)
    assert found == pytest.approx(15.0)


def test_one_sample_has_no_rate():
    assert promql.increase([10.0], [5.0], 0.0, 60.0) is None


def test_a_quantile_is_of_what_came_in_the_window_of_all_replicas():
    history = History(60.0)
    before, fast = [4.0] * 50 + [0.5] * 5, [0.5] * 5
    for at, first, second in ((10.0, before, fast), (40.0, [*before, 0.5], [0.5] * 14)):
        history.add(
            view(
                at,
                2,
                {
                    "r0": Sample("r0", at, ttft_seconds=histogram((1.0, 2.5, 5.0), first)),
                    "r1": Sample("r1", at, ttft_seconds=histogram((1.0, 2.5, 5.0), second)),
                },
            )
        )
    # the 50 slow ones came before; ten of 0.5 s came since
    found = history.quantile(0.9, lambda each: each.ttft_seconds, 60.0)
    assert found == pytest.approx(0.9, abs=0.01)


def test_samples_leave_the_window_also_of_replicas_that_are_gone():
    history = History(60.0)
    history.add(view(0.0, 1, {"r0": Sample("r0", 0.0, finished_requests=1.0)}))
    history.add(view(59.0, 0))
    assert history.names() == ("r0",)
    history.add(view(60.0, 0))
    assert history.names() == ()
