"""Waiting: as long as the API server asks within bounds, and longer for what fails again."""

from __future__ import annotations

import pytest
from kubernetes.aio.client.exceptions import ApiException

from poolwise.cluster import clock
from poolwise.cluster.kube_errors import translated
from poolwise.cluster.patience import RETRY_AFTER_LIMIT_SECONDS, Relists
from poolwise.errors import Unavailable


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("86400", RETRY_AFTER_LIMIT_SECONDS),
        ("9" * 400, RETRY_AFTER_LIMIT_SECONDS),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-1", None),
        ("\u00b2", None),
        ("", None),
    ],
)
def test_the_api_server_is_obeyed_within_bounds(header, seconds):
    error = ApiException(status=429, reason="too many requests")
    error.headers = {"Retry-After": header}
    found = translated(error, "list pods")
    assert isinstance(found, Unavailable)
    assert found.retry_after_seconds == seconds


def test_a_watch_is_listed_anew_at_once_and_then_later_and_later(monkeypatch):
    monkeypatch.setattr(clock, "jitter", lambda: 1.0)
    now = [0.0]
    relists = Relists(lambda: now[0])
    assert [relists.pause_seconds() for _ in range(4)] == [0, 1, 1, 2]
    now[0] = 3600.0  # it was watched in between
    assert [relists.pause_seconds() for _ in range(2)] == [0, 1]
