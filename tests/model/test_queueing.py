"""Queues and tails against exact laws and hand-derived numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.serving.queueing import (
    NEVER,
    Delay,
    log_normal,
    mixture_percentile,
    total,
    waiting,
)


def erlang_c(servers: int, offered: float) -> float:
    """Probability to wait in M/M/m, by the textbook sum."""
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


def test_one_server_with_fixed_service_is_pollaczek_khinchine() -> None:
    # M/D/1: W = rate D^2 / (2 (1 - rate D)); rate 4/s, D = 0.2 s gives 0.4 s.
    assert waiting(4.0, Delay(0.2), 1.0, 1.0).mean_seconds == pytest.approx(0.4)


def test_one_server_with_exponential_service_is_m_m_1() -> None:
    wait = waiting(4.0, Delay(0.2, 0.04, 2 * 0.2**3), 1.0, 1.0)
    assert wait.mean_seconds == pytest.approx(0.8 * 0.2 / 0.2)
    # Var W of M/M/1 is rho (2 - rho) / (mu - lambda)^2.
    assert wait.variance_seconds2 == pytest.approx(0.8 * 1.2 / 1.0)


@pytest.mark.parametrize("servers", [8, 32, 80])
@pytest.mark.parametrize("load", [0.8, 0.95])
def test_many_servers_are_near_erlang(servers: int, load: float) -> None:
    exact = erlang_c(servers, servers * load) / (servers * (1 - load))
    approximate = waiting(servers * load, Delay(1.0, 1.0, 2.0), servers, 1.0).mean_seconds
    # Close to a hundredth of a service time; light loads err to the long side.
    assert approximate == pytest.approx(exact, rel=0.06, abs=0.01)
    assert approximate > 0.95 * exact


def test_overload_never_ends() -> None:
    assert waiting(10.0, Delay(0.1), 1.0, 1.0) == NEVER
    assert waiting(1.0, Delay(0.1), 0.0, 1.0) == NEVER
    assert NEVER.percentile(99.0) == math.inf


def test_regular_arrivals_and_service_do_not_wait() -> None:
    assert waiting(4.0, Delay(0.2), 1.0, 0.0).mean_seconds == 0.0


@pytest.mark.parametrize(("percent", "exact"), [(95.0, 2.996), (99.0, 4.605)])
def test_exponential_tail_within_four_percent(percent: float, exact: float) -> None:
    assert Delay(1.0, 1.0, 2.0).percentile(percent) == pytest.approx(exact, rel=0.04)


def test_a_fixed_time_shifts_the_percentiles_of_a_log_normal_one() -> None:
    alone = Delay.log_normal(1.0, 2.0)
    shifted = total([Delay(5.0), alone])
    for percent in (1.0, 50.0, 99.0):
        assert shifted.percentile(percent) == pytest.approx(5.0 + alone.percentile(percent))
        assert shifted.share_below(shifted.percentile(percent)) == pytest.approx(percent / 100)


def test_mean_of_the_longer_of_a_length_and_a_floor() -> None:
    lengths = log_normal(400.0, 1500.0)
    assert lengths.mean_of_at_least(1e-6) == pytest.approx(lengths.mean)
    assert lengths.mean_of_at_least(1e6) == pytest.approx(1e6)
    assert lengths.mean_of_at_least(lengths.mean) > lengths.mean
    assert log_normal(512.0, 512.0).mean_of_at_least(600.0) == 600.0


def test_log_normal_gives_back_its_quantiles() -> None:
    lengths = log_normal(400.0, 1500.0)
    delay = lengths.scaled(lengths.mean)
    assert delay.percentile(50.0) == pytest.approx(400.0)
    assert delay.percentile(95.0) == pytest.approx(1500.0)
    assert lengths.biased_mean > lengths.mean > 400.0


def test_equal_quantiles_mean_one_size() -> None:
    assert log_normal(512.0, 512.0).scv == 0.0
    assert log_normal(0.0, 0.0).mean == 0.0


def test_sum_of_independent_delays() -> None:
    both = total([Delay(1.0, 0.5, 0.1), Delay(2.0, 0.25, 0.2)])
    assert (both.mean_seconds, both.variance_seconds2) == (3.0, 0.75)
    assert both.third_seconds3 == pytest.approx(0.3)


def test_mixture_jumps_where_the_rare_kind_reaches_the_percentile() -> None:
    usual, rare = Delay(0.01), Delay(0.1)
    assert mixture_percentile(usual, rare, 0.005, 99.0) == pytest.approx(0.01, rel=1e-4)
    assert mixture_percentile(usual, rare, 0.02, 99.0) == pytest.approx(0.1)


def test_mixture_of_exponential_like_times_against_its_own_shares() -> None:
    usual, rare = Delay.log_normal(0.02, 1e-5), Delay.log_normal(0.08, 1e-3)
    tail = mixture_percentile(usual, rare, 0.1, 95.0)
    assert 0.9 * usual.share_below(tail) + 0.1 * rare.share_below(tail) == pytest.approx(0.95)


@given(st.floats(0.0, 0.3), st.floats(0.0, 0.3), st.floats(60.0, 99.5))
def test_more_rare_ones_never_shorten_the_tail(first: float, second: float, percent: float) -> None:
    usual, rare = Delay.log_normal(0.02, 1e-5), Delay.log_normal(0.035, 3e-4)
    fewer, more = sorted((first, second))
    short = mixture_percentile(usual, rare, fewer, percent)
    assert short <= mixture_percentile(usual, rare, more, percent) * (1 + 1e-4)


def test_shares_and_percentiles_are_inverse() -> None:
    delay = Delay.log_normal(0.5, 0.2)
    assert delay.share_below(delay.percentile(90.0)) == pytest.approx(0.9)
    assert Delay(0.5).share_below(0.4) == 0.0
    assert Delay(0.5).share_below(0.5) == 1.0


@given(st.floats(0.01, 0.95), st.floats(1.0, 200.0), st.floats(0.0, 10.0), st.floats(0.0, 4.0))
def test_waiting_grows_with_load_bursts_and_spread(
    load: float, servers: float, bursts: float, spread: float
) -> None:
    usual, more = Delay.log_normal(1.0, spread), Delay.log_normal(1.0, spread + 1)
    wait = waiting(load * servers, usual, servers, bursts).mean_seconds
    assert waiting(1.02 * load * servers, usual, servers, bursts).mean_seconds >= wait
    assert waiting(load * servers, usual, servers, bursts + 1).mean_seconds >= wait
    assert waiting(load * servers, more, servers, bursts).mean_seconds >= wait


@given(st.floats(1e-4, 100.0), st.floats(0.0, 25.0), st.floats(1.0, 99.0))
def test_percentiles_rise(mean: float, scv: float, percent: float) -> None:
    delay = Delay.log_normal(mean, scv * mean**2)
    assert delay.percentile(percent) <= delay.percentile(percent + 0.9)


@given(st.floats(1.0, 5000.0), st.floats(1.0, 500.0), st.integers(6, 17))
def test_lengths_that_have_an_end_are_possible(p50: float, ratio: float, power: int) -> None:
    """Two figures of a wide law say that lengths vary more than any between none and all can."""
    most = 2.0**power
    wide = log_normal(p50, p50 * ratio)
    lengths = wide.at_most(most)
    second = lengths.mean**2 * (1.0 + lengths.scv)
    third = lengths.scaled(lengths.mean).third_moment_seconds3
    assert lengths.mean <= most
    assert second <= most * lengths.mean * (1.0 + 1e-9)
    assert third <= most**2 * lengths.mean * (1.0 + 1e-9)
    assert lengths.biased_mean <= most * (1.0 + 1e-9)


def test_usual_lengths_are_left_as_they_are() -> None:
    for p50, p95 in ((300, 1200), (350, 900), (4000, 4000)):
        assert log_normal(p50, p95).at_most(8192.0) == log_normal(p50, p95)
