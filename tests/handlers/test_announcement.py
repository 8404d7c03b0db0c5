"""Which changes of a status are told as Events."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poolwise.handlers import announcement
from poolwise.handlers.announcement import announcements


def status(*conditions, pool=None):
    return {
        "plan": {"pool": pool},
        "conditions": [
            dict(zip(("type", "status", "reason", "message"), each, strict=True))
            for each in conditions
        ],
    }


PLACED = ("Placed", "True", "Placed", "runs on h100")
BROKEN = ("MetricsAvailable", "False", "MetricsBroken", "chat-0: answers HTML")
HELD = ("ScalingActive", "False", "MetricsBroken", "replicas may be added, none is removed")
UNREACHABLE = ("SLOMet", "False", "SLOUnreachable", "ITL p99")
CONFLICT = ("ScalingActive", "False", "AutoscalerConflict", "another one scales it too")
WAITS = ("Placed", "False", "InsufficientCapacity", "needs 64, 48 are free")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param(None, status(PLACED), [("Placed", False)], id="first-placement"),
        pytest.param(status(PLACED), status(PLACED), [], id="nothing-new"),
        pytest.param(None, status(WAITS), [("InsufficientCapacity", True)], id="waits"),
        pytest.param(
            status(WAITS),
            status((*WAITS[:3], "needs 64, 56 are free")),
            [],
            id="waits-with-other-numbers",
        ),
        pytest.param(
            status(PLACED, pool="a"), status(PLACED, pool="b"), [("Placed", False)], id="moved"
        ),
        pytest.param(
            None,
            status(("Accepted", "True", "Valid", ""), ("Planned", "True", "PlanReady", ""), PLACED),
            [("Placed", False)],
            id="one-event-for-one-decision",
        ),
        pytest.param(
            None,
            status(("Accepted", "False", "InvalidSpec", "no"), pool=None),
            [("InvalidSpec", True)],
            id="rejected",
        ),
        pytest.param(
            status(PLACED),
            status(PLACED, ("Complete", "True", "Completed", "")),
            [("Completed", False)],
            id="completed",
        ),
        pytest.param(
            status(PLACED), status(PLACED, ("PodsReady", "False", "CrashLoop", "")), [], id="pods"
        ),
        pytest.param(
            None,
            status(BROKEN, HELD),
            [("MetricsBroken", True)],
            id="the-cause-and-not-what-follows",
        ),
        pytest.param(
            None,
            status(("MetricsAvailable", "False", "NoMetricsPort", "no port is named metrics")),
            [("NoMetricsPort", False)],
            id="what-asks-for-nothing-is-no-warning",
        ),
        pytest.param(
            None,
            status(("Placed", "False", "NoFeasiblePool", "ITL p99"), UNREACHABLE),
            [("NoFeasiblePool", True)],
            id="a-target-that-no-pool-keeps",
        ),
        pytest.param(
            status(PLACED),
            status(PLACED, UNREACHABLE),
            [("SLOUnreachable", True)],
            id="a-target-that-what-runs-does-not-keep",
        ),
        pytest.param(
            status(BROKEN, CONFLICT), status(BROKEN, HELD), [], id="a-cause-that-was-told-before"
        ),
        pytest.param(
            status(BROKEN, HELD),
            status(BROKEN, CONFLICT),
            [("AutoscalerConflict", True)],
            id="another-cause",
        ),
    ],
)
def test_announcements(before, after, told):
    assert [(each.reason, each.is_warning) for each in announcements(before, after)] == told


def test_the_page_of_conditions_says_which_are_events():
    page = Path(__file__).parents[2].joinpath("docs", "conditions.md").read_text(encoding="utf-8")
    events = page.partition("\n## Events\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (Warning|Normal) \| (True|False) \| (.*) \|$", events, re.M)
    told = {(kind, status, name) for kind, status, names in cells for name in names.split(", ")}
    assert told == {
        ("Warning" if is_warning else "Normal", status, f"`{name}`")
        for name, by_status in announcement._TOLD.items()
        for status, is_warning in by_status.items()
    }


MORE = {"from": 2, "to": 3, "reason": "more comes"}
LESS = {"from": 3, "to": 2, "reason": "less comes"}


def scaled(count, *decisions, mode="Direct"):
    """The newest decision first."""
    return {"scaling": {"mode": mode, "desiredReplicas": count, "decisions": list(decisions)}}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param(scaled(2), scaled(3, MORE), ["ScaledUp"], id="up"),
        pytest.param(scaled(3, MORE), scaled(2, LESS, MORE), ["ScaledDown"], id="down"),
        pytest.param(scaled(3, MORE), scaled(3, MORE), [], id="nothing-new"),
        pytest.param(scaled(None, MORE), scaled(3, MORE), [], id="a-decision-told-before"),
        pytest.param(scaled(3, MORE), scaled(3, LESS, MORE), [], id="the-same-number"),
        pytest.param(scaled(2), scaled(3, MORE, mode="External"), [], id="set-by-others"),
    ],
)
def test_another_number_of_replicas_is_told_once_where_poolwise_sets_it(before, after, told):
    assert [each.reason for each in announcements(before, after)] == told
