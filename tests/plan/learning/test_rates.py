"""What is believed of workloads that no table knows, before and after they ran."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model.prediction import Interval
from poolwise.plan.learning import Place, PoolSpec, Rates

SPECS = (
    PoolSpec("slow", flops_per_second=4e12, bytes_per_second=250e9),
    PoolSpec("fast", flops_per_second=16e12, bytes_per_second=1000e9),
    PoolSpec("fastest", flops_per_second=64e12, bytes_per_second=2000e9),
)
NEW = Rates(SPECS)


def estimate(
    rates: Rates, workload: str, pool: str, accelerators: int = 1, packed: bool = True
) -> Interval:
    (told,) = rates.estimates([Place(workload, pool, accelerators, packed)])
    return told


def mid(
    rates: Rates, workload: str, pool: str, accelerators: int = 1, packed: bool = True
) -> float:
    return estimate(rates, workload, pool, accelerators, packed).mid


def test_at_first_sight_the_datasheet_speaks() -> None:
    assert mid(NEW, "x", "fast") / mid(NEW, "x", "slow") == pytest.approx(4.0)
    assert mid(NEW, "x", "fast", 8) > mid(NEW, "x", "fast", 8, packed=False)
    assert mid(NEW, "x", "fast", 1) == mid(NEW, "x", "fast", 1, packed=False)


def test_what_was_measured_is_believed() -> None:
    rates = NEW
    for _ in range(5):
        rates = rates.observe("x", "fast", 100.0, 4)
    told = estimate(rates, "x", "fast", 4)
    assert told.mid == pytest.approx(100.0, rel=0.01)
    assert told.low < 100.0 < told.high < 1.15 * told.low


def test_one_pool_tells_of_the_others() -> None:
    rates = NEW.observe("x", "slow", 10.0)
    told = estimate(rates, "x", "fast")
    assert told.low < 40.0 < told.high
    assert told.spread < 0.2 * estimate(NEW, "x", "fast").spread


def test_who_gains_nothing_from_a_faster_chip_gains_nothing_from_the_fastest() -> None:
    rates = NEW.observe("x", "slow", 10.0).observe("x", "fast", 10.0)
    gain = mid(rates, "x", "fastest") / mid(rates, "x", "fast")
    untold = mid(NEW, "x", "fastest") / mid(NEW, "x", "fast")
    assert gain < 0.75 * untold


def test_kin_learn_from_each_other_and_strangers_less() -> None:
    rates = NEW.observe("model/16", "slow", 10.0).observe("model/16", "fast", 10.0)
    ratios = [
        mid(rates, name, "fast") / mid(rates, name, "slow")
        for name in ("model/16", "model/32", "stranger")
    ]
    assert 1.0 < ratios[0] < ratios[1] < ratios[2] < 4.0


def test_a_pool_that_is_slower_than_its_datasheet_for_all_is_so_for_the_next() -> None:
    rates = NEW
    for name in ("a", "b", "c", "d"):
        rates = rates.observe(name, "slow", 10.0).observe(name, "fast", 20.0)
        rates = rates.observe(name, "fastest", 110.0)
    assert mid(rates, "new", "fast") / mid(rates, "new", "slow") < 3.0


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_rate_tells_nothing(rate: float) -> None:
    assert NEW.observe("x", "slow", rate) is NEW


def test_what_is_measured_on_an_unknown_pool_tells_nothing() -> None:
    assert NEW.observe("x", "other", 1.0) is NEW
    with pytest.raises(KeyError):
        estimate(NEW, "x", "other")


def test_figures_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Rates((PoolSpec("a", 0.0, 1.0),))


runs = st.tuples(
    st.sampled_from(["m/1", "m/2", "n/1"]),
    st.sampled_from(["slow", "fast", "fastest"]),
    st.floats(1e-3, 1e3),
    st.sampled_from([1, 2, 8]),
    st.booleans(),
)


@settings(max_examples=25)
@given(st.lists(runs, max_size=12))
def test_the_order_of_measurements_does_not_matter(
    found: list[tuple[str, str, float, int, bool]],
) -> None:
    turned = sorted(found, key=lambda run: run[2])
    one, other = NEW, NEW
    for run in found:
        one = one.observe(*run)
    for run in turned:
        other = other.observe(*run)
    for pool in ("slow", "fast", "fastest"):
        told, again = estimate(one, "m/1", pool, 2), estimate(other, "m/1", pool, 2)
        assert told.mid == pytest.approx(again.mid, rel=1e-4)
        assert 0.0 < told.low <= told.mid <= told.high


@settings(max_examples=25)
@given(st.lists(runs, max_size=12))
def test_all_at_once_tell_what_one_by_one_do(
    found: list[tuple[str, str, float, int, bool]],
) -> None:
    one = NEW
    for run in found:
        one = one.observe(*run)
    places = [(Place(name, pool, count, packed), rate) for name, pool, rate, count, packed in found]
    other = Rates.measured(SPECS, places)
    assert other.seen.keys() == one.seen.keys()
    for pool, told in one.among("m/1", 2).items():
        again = other.among("m/1", 2)[pool]
        assert again.rate.mid == pytest.approx(told.rate.mid, rel=1e-4)
        assert again.own_spread == pytest.approx(told.own_spread, abs=1e-4)


@settings(max_examples=25)
@given(st.lists(runs, min_size=1, max_size=12), st.floats(1e-3, 1e3))
def test_knowing_more_never_widens_a_range(
    found: list[tuple[str, str, float, int, bool]], rate: float
) -> None:
    rates = NEW
    for run in found:
        rates = rates.observe(*run)
    more = rates.observe("m/1", "fast", rate, 8)
    for pool in ("slow", "fast", "fastest"):
        before = estimate(rates, "m/1", pool, 8).spread
        assert estimate(more, "m/1", pool, 8).spread <= before + 1e-4
