"""How long the oldest piece of work has been under way."""

from __future__ import annotations

import pytest

from poolwise.cluster.under_way import UnderWay


def test_the_oldest_that_has_not_ended_counts():
    now = [100.0]
    under_way = UnderWay[str](lambda: now[0])
    assert under_way.oldest_seconds() == 0.0
    under_way.begin("first")
    now[0] = 103.0
    under_way.begin("second")
    now[0] = 110.0
    assert under_way.oldest_seconds() == 10.0
    under_way.end("first")
    assert ("first" in under_way, "second" in under_way) == (False, True)
    assert under_way.oldest_seconds() == 7.0
    under_way.end("second")
    assert under_way.oldest_seconds() == 0.0


def test_what_fails_has_ended():
    under_way = UnderWay[str]()
    with pytest.raises(ValueError, match="no"), under_way.during("pass"):
        assert len(under_way) == 1
        raise ValueError("no")
    assert len(under_way) == 0
