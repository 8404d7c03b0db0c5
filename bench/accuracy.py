"""How far predictions are from measurements, and folds that do not leak."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
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
    covered: float | None = None
    """Share of rows inside the interval that should hold nine in ten."""

    def as_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return asdict(self)


def accuracy(predicted: Vector, measured: Vector, covered: Vector | None = None) -> Accuracy:
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
        covered=None if covered is None else 100 * float(np.mean(covered)),
    )


def fold_of(group: str, folds: int = FOLDS) -> int:
    """The fold of a family of near-identical rows; the same on every machine and day."""
    return zlib.crc32(group.encode()) % folds


def folds(groups: Sequence[str], count: int = FOLDS) -> Iterator[tuple[list[int], list[int]]]:
    """Indices to fit on and to score, fold by fold; a group is never split."""
    member = [fold_of(group, count) for group in groups]
    for fold in range(count):
        inside = [index for index, each in enumerate(member) if each == fold]
        if inside:
            yield [index for index, each in enumerate(member) if each != fold], inside
