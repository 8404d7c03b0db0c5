"""What is built from cells, which may hold anything: the thing, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from poolwise.errors import PoolwiseError

Built = TypeVar("Built")


def attempt(build: Callable[[], Built]) -> Built | str:
    """The outcome, or the reason why there is none, in a few words."""
    try:
        return build()
    except PoolwiseError as error:
        return str(error)
    except (ArithmeticError, ValueError, LookupError) as error:
        return f"a cell cannot be used: {error!r}"
