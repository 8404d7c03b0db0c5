"""Replicas that do not start: who they are, and how many others make up for."""

from datetime import timedelta

import pytest

from poolwise.plan.conditions import timestamp
from poolwise.plan.live.overdue import overdue, start_overdue, together
from tests.plan.live.given import NOW, pod

LIMIT_SECONDS = 300.0
"""Pods of these tests were requested ten minutes ago."""


def found(*pods, replicas=3):
    return overdue(pods, replicas, LIMIT_SECONDS, NOW.timestamp())


def stuck(name="late", lost_seconds_ago=None, **more):
    made = pod(name, ready_after_seconds=None, **more)
    if lost_seconds_ago is not None:
        since = timestamp(NOW - timedelta(seconds=lost_seconds_ago))
        made["status"]["conditions"] = [
            {"type": "Ready", "status": "False", "lastTransitionTime": since}
        ]
    return made


@pytest.mark.parametrize(
    ("pods", "late", "missing"),
    [
        ([pod("a"), pod("b"), pod("c")], set(), 0),
        ([pod("a"), pod("b"), stuck()], {"late"}, 1),
        ([pod("a"), stuck("x"), stuck("y")], {"x", "y"}, 2),
        # The pod that an update makes beside all others is missed by nobody.
        ([pod("a"), pod("b"), pod("c"), stuck()], {"late"}, 0),
        # Where none is ready, others would fail alike.
        ([stuck("x"), stuck("y"), stuck("z")], {"x", "y", "z"}, 0),
        # What leaves is neither late nor there.
        ([pod("a"), stuck("gone", leaves=True), stuck()], {"late"}, 1),
        # It ran, and lost its readiness a moment ago, or long ago.
        ([pod("a"), pod("b"), stuck(lost_seconds_ago=20)], set(), 0),
        ([pod("a"), pod("b"), stuck(lost_seconds_ago=500)], {"late"}, 1),
    ],
)
def test_who_is_late_and_who_is_missed(pods, late, missing):
    told = found(*pods)
    assert (told.names, told.missing) == (late, missing)


def test_how_long_is_told():
    assert found(pod("a"), stuck()).longest_seconds == 600.0
    assert found().longest_seconds == 0.0


def test_it_is_told_while_there_are_such_replicas_and_no_longer():
    late, none = start_overdue(found(pod("a"), stuck("x"), stuck("y"))), start_overdue(found())
    assert (late.is_there, late.is_gone) == (True, False)
    assert (none.is_there, none.is_gone) == (False, True)
    assert late.told.startswith(
        "x and 1 more replica did not become ready within 5 min (not counted as capacity; 2 "
        "others asked for instead)"
    )


def test_on_a_further_pool_it_is_enough_that_others_of_the_service_are_ready():
    assert found(stuck("x"), stuck("y")).missing == 0
    pods = [stuck("x"), stuck("y")]
    assert overdue(pods, 2, LIMIT_SECONDS, NOW.timestamp(), is_proven=True).missing == 2


def test_all_pools_together():
    both = together([found(pod("a"), stuck("x")), found(pod("b"), pod("c"), replicas=2)])
    assert both.names == {"x"}
    assert (both.missing, both.longest_seconds) == (1, 600.0)
    assert together([]).missing == 0
