"""Rows that are compared with one another, predicted by residuals that none of them had a part in.

Rows that differ in their accelerator alone lie in different folds. The residual without one's fold
has seen the other, and takes the other's error for its own: what two rows truly differ by, a and b,
comes back as b and a, so that their ratio is off by twice that. On rows that no fit has seen it is
not so. Hence the folds of all rows that are compared are left out together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bench.model.choice import SERVING
from bench.model.outcome import Outcome


def side_by_side(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The same outcomes; those with a residual predicted without all folds of their job."""
    found = list(outcomes)
    folds: dict[tuple[str, ...], set[int]] = {}
    for each in found:
        if each.beside and each.fold is not None:
            folds.setdefault(_job(each), set()).add(each.fold)
    return [_without(each, frozenset(folds.get(_job(each), ()))) for each in found]


def _job(each: Outcome) -> tuple[str, ...]:
    return tuple(each.row.get(column, "") for column in SERVING)


def _without(each: Outcome, folds: frozenset[int]) -> Outcome:
    factor = each.beside.get(folds)
    if each.predicted is None or factor is None:
        return each
    return replace(each, predicted=each.predicted.scaled(factor))
