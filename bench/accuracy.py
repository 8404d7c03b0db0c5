"""How far predictions are from measurements, and folds that do not leak."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

Vector = NDArray[np.float64]
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors of one target, in percent of what was measured."""

    rows: int
    mdape: float
    mape: float
    p90: float
    spearman: float
    bias: float
    """Median of the signed error."""

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def accuracy(predicted: Vector, measured: Vector) -> Accuracy:
    """Errors of ``predicted`` against ``measured``, rows in the same order."""
    signed = 100 * (predicted / measured - 1)
    wrong = np.abs(signed)
    rank = spearmanr(predicted, measured).statistic if len(measured) > 2 else float("nan")
    return Accuracy(
        rows=len(measured),
        mdape=float(np.median(wrong)),
        mape=float(np.mean(wrong)),
        p90=float(np.percentile(wrong, 90)),
        spearman=float(rank),
        bias=float(np.median(signed)),
    )


def fold_of(group: str, folds: int = FOLDS) -> int:
    """The fold of a family of near-identical rows; the same on every machine and day."""
    return zlib.crc32(group.encode()) % folds
