"""Rank 0: which of a run's pods tells its steps, and when it is another life."""

from __future__ import annotations

import pytest

from poolwise.plan.children.environment import INDEX
from poolwise.plan.steps.rank import life, rank_zero


def pod(name: str, minute: int = 0, index: str = "0", phase: str = "Running", **metadata: str):
    """Made at that minute."""
    made = f"2026-11-24T00:{minute:02}:00Z"
    told = {"name": name, "uid": name, "creationTimestamp": made, "labels": {INDEX: index}}
    return {"metadata": told | metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    "other",
    [
        pod("other", 5, index="1"),
        pod("other", 5, phase="Pending"),
        pod("other", 5, phase="Failed"),
        pod("other", 5, deletionTimestamp="2026-11-24T00:06:00Z"),
        pod("other", 1),
    ],
    ids=["another-rank", "not-yet", "failed", "leaves", "older"],
)
def test_the_newest_of_index_0_that_runs_tells(other):
    mine = pod("mine", 2)
    for pods in ([mine, other], [other, mine]):
        assert rank_zero(pods) is mine


def test_of_a_run_without_such_a_pod_none_tells():
    assert rank_zero([pod("other", index="1")]) is None


def test_a_container_that_starts_again_is_another_life():
    first = pod("mine")
    again = {**first, "status": {"containerStatuses": [{"restartCount": 1}]}}
    assert [life(each) for each in (first, again)] == ["mine/0", "mine/1"]
