"""Numbers that a command line may ask for; argparse tells which option is wrong, and how."""

from __future__ import annotations

import argparse

MOST = 1e5
"""Of any number that is asked for."""


def positive(text: str) -> float:
    """Above 0."""
    value = _number(text)
    if not 0.0 < value <= MOST:
        raise argparse.ArgumentTypeError(f"is {text}, must be above 0 and at most {MOST:g}")
    return value


def share(text: str) -> float:
    """Between 0 and 1."""
    value = _number(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"is {text}, must be above 0 and below 1")
    return value


def not_negative(text: str) -> float:
    """0 or more."""
    value = _number(text)
    if not 0.0 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"is {text}, must be from 0 to {MOST:g}")
    return value


def count(text: str) -> int:
    """A whole number, 1 or more."""
    value = _whole(text)
    if not 1 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"is {text}, must be from 1 to {MOST:g}")
    return value


def count_or_none(text: str) -> int:
    """A whole number, 0 or more; a seed may be any."""
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"is {text}, must be 0 or more")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"is {text}, must be a number") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"is {text}, must be a whole number") from None
