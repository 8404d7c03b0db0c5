"""What a target of ``python -m bench.model`` hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy import Accuracy
from poolwise.tables import Tables

SHIPPED = "shipped"
OUT_OF_FOLD = "out of fold"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked on the command line."""

    folder: Path
    tables: Tables
    refit: bool
    """Whether out-of-fold accuracy is wanted, which refits five times."""


@dataclass(frozen=True, slots=True)
class Result:
    """Accuracy of one target on one split under one protocol."""

    target: str
    split: str
    """``open``, or the reserved split that a row names."""
    protocol: str
    """``shipped``: with the constants in the package; ``out of fold``: refitted without the
    row's group."""
    accuracy: Accuracy


def split_of(row: dict[str, str]) -> str:
    """The split a row belongs to; only reserved rows name one."""
    return row.get("split") or "open"


def indices_by_split(rows: Sequence[dict[str, str]]) -> dict[str, list[int]]:
    """Where the rows of each split are."""
    found: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        found.setdefault(split_of(row), []).append(index)
    return found
