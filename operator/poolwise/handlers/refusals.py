"""What will not work until somebody changes something, and the word for it in conditions."""

from __future__ import annotations

from poolwise.errors import Forbidden, InvalidInput, NameEnds, NamespaceEnds, NameTaken, Refused
from poolwise.plan.conditions import Reason

_REASONS: dict[type[Exception], Reason] = {
    NameTaken: Reason.NAME_CONFLICT,
    NameEnds: Reason.NAME_IN_DELETION,
    Forbidden: Reason.FORBIDDEN,
    Refused: Reason.CHILD_REFUSED,
    NamespaceEnds: Reason.CHILD_REFUSED,
    InvalidInput: Reason.INVALID_SPEC,
}

REFUSALS = tuple(_REASONS)
"""Errors that a quick retry does not cure."""


def reason_of(error: Exception) -> Reason:
    """The reason that conditions give for ``error``."""
    return _REASONS.get(type(error), Reason.INTERNAL_ERROR)


def internal_error(error: Exception) -> str:
    """What a user is told of an error of ours."""
    problem = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    return (
        f"Poolwise failed on this object, which is an error of Poolwise ({problem}); "
        "please report it with the object's spec"
    )
