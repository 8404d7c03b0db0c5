"""A watch is as old as its last byte."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from poolwise.cluster.freshness import Freshness

PODS = "/api/v1/pods"


@pytest.fixture
def clock():
    return SimpleNamespace(seconds=0.0)


@pytest.fixture
def freshness(clock):
    freshness = Freshness(lambda: clock.seconds)
    freshness.require([PODS])
    return freshness


def response(received_bytes=0):
    return SimpleNamespace(content=SimpleNamespace(total_bytes=received_bytes))


def test_a_watch_that_never_opens_grows_old(freshness, clock):
    clock.seconds = 200
    assert freshness.ages_seconds() == {PODS: 200}


def test_bytes_make_it_young_again(freshness, clock):
    stream = response()
    freshness.opened(PODS, stream)
    clock.seconds = 60
    assert freshness.ages_seconds()[PODS] == 60
    stream.content.total_bytes = 120
    assert freshness.ages_seconds()[PODS] == 0
    clock.seconds = 100
    assert freshness.ages_seconds()[PODS] == 40


def test_opening_again_counts_as_news(freshness, clock):
    freshness.opened(PODS, response(500))
    clock.seconds = 90
    freshness.opened(PODS, response())
    assert freshness.ages_seconds()[PODS] == 0


def test_a_server_behind_a_prefix_is_the_same_watch(freshness, clock):
    clock.seconds = 90
    freshness.opened(f"/k8s/clusters/c-1{PODS}", response())
    assert freshness.ages_seconds() == {PODS: 0}


def test_other_watches_are_nobodys_business(freshness):
    freshness.opened("/api/v1/secrets", response())
    assert set(freshness.ages_seconds()) == {PODS}
