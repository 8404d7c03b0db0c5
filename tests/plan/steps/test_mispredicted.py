"""A run whose steps are outside of the model's range says so, and what it may come from."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.conditions import Type
from poolwise.plan.pool import Condition
from poolwise.plan.steps.mispredicted import as_planned

PREDICTED = {"stepSeconds": 2.0, "stepSecondsLow": 1.6, "stepSecondsHigh": 2.5}


def judged(
    ratio: float, windows: int = 8, is_eager: bool = False, reason: str = "", **predicted: Any
) -> Condition | None:
    before = {"type": str(Type.AS_PLANNED), "status": "False", "reason": reason}
    status = {
        "plan": {"predicted": {**PREDICTED, **predicted}},
        "conditions": [before] if reason else [],
    }
    observed = {"ratio": ratio, "training": {"samples": windows}}
    return next(iter(as_planned(observed, status, is_eager)), None)


@pytest.mark.parametrize("ratio", [0.81, 1.0, 1.24])
def test_inside_the_range_all_is_as_planned(ratio):
    found = judged(ratio)
    assert found is not None
    assert (found.status, found.reason) == (True, "NoMismatch")


def test_a_slow_run_has_its_numbers_and_the_likeliest_cause_first():
    found = judged(1.6)
    assert found is not None
    assert (found.type, found.status, found.reason) == ("AsPlanned", False, "Mispredicted")
    assert found.message.startswith(
        "a step takes 1.6 times what was predicted, outside the range of 0.8 to 1.25 times: "
        "spec.training.execution: Eager"
    )
    assert "throttled" in found.message


def test_a_run_that_says_it_is_eager_is_not_told_to_be():
    found = judged(1.6, is_eager=True)
    assert found is not None and found.status is False
    assert "Eager" not in found.message


def test_a_little_slower_is_no_eager_run():
    found = judged(1.2, stepSecondsHigh=2.2)
    assert found is not None and found.status is False
    assert "Eager" not in found.message


@pytest.mark.parametrize("is_eager", [False, True])
def test_a_fast_run_is_told_too(is_eager):
    found = judged(0.7, is_eager=is_eager)
    assert found is not None and found.reason == "Mispredicted"
    assert ("compiled after all" in found.message) is is_eager


def test_what_was_told_is_so_until_it_is_well_inside():
    """1.25 is the end of the range, and 1.2 eight tenths of the way there (of logarithms)."""
    for ratio, status in ((1.22, False), (1.18, True)):
        found = judged(ratio, reason="Mispredicted")
        assert found is not None and found.status is status
    fresh = judged(1.22)
    assert fresh is not None and fresh.status is True


@pytest.mark.parametrize(
    "figures",
    [
        {"windows": 4},
        {"stepSecondsHigh": None},
        {"stepSecondsLow": 2.0},
        {"stepSecondsLow": "fast"},
    ],
    ids=["too few windows", "no range", "empty range", "no figure"],
)
def test_nothing_is_told_where_nothing_can_be_judged(figures):
    assert judged(3.0, **figures) is None
