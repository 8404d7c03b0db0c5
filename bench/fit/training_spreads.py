"""How wide predictions of the training step have to be, from rows that a fit did not see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import Vector, fold_of
from bench.fit.rows import PRIOR
from bench.fit.training_constants import ACCELERATOR, FAMILY
from bench.training_runs import LaidRun
from poolwise.model.efficiency import EVERY
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.tables.efficiencies import EfficiencyRow

WIDENING = ("products", "experts")
"""Terms whose spread is that of a step's time (:mod:`poolwise.model.training.step`)."""
ENOUGH = 5
"""Groups at which an accelerator's own spread counts as much as everybody's."""


SpreadOf = Callable[[EfficiencyRow], float]
"""Of one constant."""


def spreads(several: Sequence[LaidRun], errors: Vector) -> SpreadOf:
    """Such that nine in ten lie within 1.645 of them.

    An accelerator's is that of its own rows, drawn towards everybody's by :data:`ENOUGH` groups;
    one that only its family, or nobody, speaks for may also differ by what families and
    accelerators differ by. What is counted is groups: rows of one are no independent witnesses.
    Without any row of its kind a constant keeps its own.
    """
    names = np.array([each.run.machine.device.name for each in several])
    sparse = np.array([each.run.is_sparse for each in several], dtype=np.bool_)
    groups = np.array([each.run.group for each in several])

    def of(chosen: NDArray[np.bool_]) -> tuple[float, int]:
        count = len(np.unique(groups[chosen]))
        return _spread(errors[chosen], count), count

    def spread(row: EfficiencyRow) -> float:
        chosen = sparse if row.term == "experts" else ~sparse
        if not chosen.any():
            return row.spread
        everybody, _ = of(chosen)
        is_own = chosen & (names == row.scope)
        if is_own.any():
            own, count = of(is_own)
            weight = count / (count + ENOUGH)
            return math.sqrt(weight * own**2 + (1 - weight) * everybody**2)
        if row.scope == EVERY:
            return math.hypot(everybody, FAMILY, ACCELERATOR)
        return math.hypot(everybody, ACCELERATOR)

    return spread


def widened(rows: Iterable[EfficiencyRow], spread: SpreadOf) -> list[EfficiencyRow]:
    """Rows of the terms that widen predictions with these spreads; all others keep their own."""
    return [
        row.model_copy(update={"spread": spread(row)})
        if row.term in WIDENING and (row.count or row.source == PRIOR)
        else row
        for row in rows
    ]


def spread_by_others(
    several: Sequence[LaidRun], errors: Vector, without: Mapping[int, Iterable[EfficiencyRow]]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold, with spreads of the other folds' rows, out of fold."""
    folds = np.array([fold_of(each.run.group) for each in several])
    found = {}
    for fold, rows in without.items():
        others = np.flatnonzero(folds != fold)
        kept = [several[index] for index in others.tolist()]
        found[fold] = widened(rows, spreads(kept, errors[others]))
    return found


def _spread(errors: Vector, groups: int) -> float:
    """From the value that holds the next group nine times in ten (split conformal prediction)."""
    level = min(1.0, 0.9 * (1 + 1 / groups))
    return float(np.quantile(np.abs(errors), level)) / NINE_IN_TEN
