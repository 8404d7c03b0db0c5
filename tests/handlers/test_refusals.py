"""What the API server refuses has a reason by which the plan knows it again."""

from __future__ import annotations

from poolwise.errors import InvalidInput
from poolwise.handlers.refusals import REFUSALS, reason_of
from poolwise.plan.history.refused import REASONS


def test_the_plan_knows_every_reason_that_a_failed_attempt_is_told_with():
    """Errors of ours as well, which are no refusals."""
    refusals = [kind("no") for kind in REFUSALS if kind is not InvalidInput]
    errors = [*refusals, InvalidInput("spec", "no"), RuntimeError("no")]
    assert {reason_of(each) for each in errors} == REASONS
