"""What a router leaves of the prompts that wait for each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import state_at_rate
from poolwise.model.serving.routing import Routed, met_share
from poolwise.model.work import Metric, Target
from tests.model.test_serving_tails import served

SHARES = st.floats(0.0, 1.0, exclude_max=True)
REQUESTS = st.floats(0.0, 300.0)
PEERS = st.floats(1.0, 1000.0)


@given(SHARES, REQUESTS, PEERS)
def test_a_router_sends_no_more_to_who_reads_than_chance_does(
    busy: float, answering: float, peers: float
) -> None:
    assert 0.0 <= met_share(busy, answering, peers) <= 1.0
    assert met_share(busy, answering, 1.0) == 1.0


@given(st.floats(0.01, 0.9), REQUESTS, PEERS)
def test_it_finds_another_the_more_seldom_the_busier_they_are(
    busy: float, answering: float, peers: float
) -> None:
    least = met_share(busy, answering, peers)
    assert met_share(busy + 0.05, answering, peers) >= least - 1e-12
    assert met_share(busy, answering + 1.0, peers) >= least - 1e-12


@given(st.floats(0.05, 0.95), st.floats(1.0, 300.0), PEERS)
def test_it_finds_another_the_more_often_the_more_there_are(
    busy: float, answering: float, peers: float
) -> None:
    assert met_share(busy, answering, peers + 1.0) <= met_share(busy, answering, peers) + 1e-12


def test_a_replica_with_nothing_to_do_is_found_where_there_is_one() -> None:
    """Ten replicas with three requests in flight between them."""
    assert met_share(0.2, 0.05, 10.0) < 0.01
    assert met_share(0.2, 5.0, 10.0) > 0.1


@pytest.mark.parametrize("busy", [1.0, 1.7])
def test_nobody_is_held_off_where_prompts_come_faster_than_they_are_read(busy: float) -> None:
    assert met_share(busy, 3.0, 20.0) == 1.0


def test_first_tokens_come_sooner_behind_a_router_that_looks() -> None:
    shown = served()
    rates = np.linspace(0.5, 6.0, 12)
    times = {
        peers: [_first_token_seconds(peers, rate) for rate in rates] for peers in (1.0, 4.0, 20.0)
    }
    assert all(one > few > many for one, few, many in zip(*times.values(), strict=True))
    for each in times.values():
        assert each == sorted(each)
    alone = state_at_rate(shown, 1e-6)
    assert alone is not None
    assert min(times[20.0]) >= latencies(shown, alone).ttft.mean_seconds


def _first_token_seconds(peers: float, rate: float) -> float:
    shown = replace(served(), routed=Routed(peers))
    at = state_at_rate(shown, rate)
    assert at is not None
    return latencies(shown, at).ttft.mean_seconds


def test_gaps_between_tokens_are_no_matter_of_how_many_a_router_chooses_among() -> None:
    """Somebody's prompt is read beside running sequences wherever it goes."""
    at = state_at_rate(served(), 4.0)
    assert at is not None
    one, many = (latencies(replace(served(), routed=Routed(each)), at) for each in (1.0, 20.0))
    target = Target(Metric.TPOT, 99.0, 0.05)
    assert one.mean_gap_share_later(target.seconds) == many.mean_gap_share_later(target.seconds)
    assert one.token_percentile(99.0) == many.token_percentile(99.0)


def test_mean_gaps_are_late_less_often_the_more_requests_are_kept_apart() -> None:
    at = state_at_rate(served(), 4.0)
    assert at is not None
    seconds = latencies(served(), at).mean_gap_percentile(95.0)
    none, half, all_apart = (
        latencies(replace(served(), routed=Routed(apart_share=each)), at)
        for each in (0.0, 0.5, 1.0)
    )
    late, seldom = none.mean_gap_share_later(seconds), all_apart.mean_gap_share_later(seconds)
    assert late == pytest.approx(0.05, rel=1e-3)
    assert 0.0 < seldom < late
    assert half.mean_gap_share_later(seconds) == pytest.approx((late + seldom) / 2.0)
