"""Predictions by constants that never saw the group of the row, and the spreads they leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.accuracy import folds
from bench.fit.serving_constants import PHASE, fitted_rows, not_fitted
from bench.fit.serving_samples import FIRST_TOKEN, TOKEN, Sample
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow, Tables

SOURCE = "bench.fit.serving: nine in ten of the out-of-fold residuals"
LEAST_ROWS = 30
"""For a spread of its own."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample with a prediction."""

    sample: Sample
    predicted: float

    @property
    def residual(self) -> float:
        """ln(predicted / measured)."""
        return float(np.log(self.predicted / self.sample.run.measured))


def scores(samples: Iterable[Sample], calibration: Calibration) -> list[Scored]:
    """Every sample with its prediction."""
    return [Scored(each, each.predicted(calibration)) for each in samples]


def out_of_fold(samples: Sequence[Sample], tables: Tables) -> list[Scored]:
    """Every sample, predicted after a fit on the groups of the other folds; takes minutes."""
    fixed = not_fitted(tables)
    scored: list[Scored] = []
    for others, held in folds([each.run.group for each in samples]):
        known = fitted_rows([samples[index] for index in others], fixed)
        scored += scores([samples[index] for index in held], Calibration([*fixed, *known]))
    return scored


def ratio_rows(scored: Iterable[Scored]) -> list[EfficiencyRow]:
    """``ttft_ratio``, ``itl_ratio`` and ``e2e_ratio``: how wide a prediction's interval must be.

    First tokens by engine, tokens by family; whole requests are mostly tokens.
    """
    tokens, firsts = [], []
    for each in scored:
        if each.sample.target is TOKEN:
            tokens.append((each.sample.run.machine.device.family, each.residual))
        elif each.sample.target is FIRST_TOKEN:
            firsts.append((each.sample.run.work.engine, each.residual))
    rows = [_row("ttft_ratio", EVERY, engine, wrong) for engine, wrong in _grouped(firsts)]
    for term in ("itl_ratio", "e2e_ratio"):
        rows += [_row(term, family, EVERY, wrong) for family, wrong in _grouped(tokens)]
    return rows


def _grouped(labelled: Sequence[tuple[str, float]]) -> Iterable[tuple[str, list[float]]]:
    """All residuals together, then those of each label with enough rows."""
    yield EVERY, [residual for _, residual in labelled]
    for label in sorted({label for label, _ in labelled}):
        wrong = [residual for each, residual in labelled if each == label]
        if len(wrong) >= LEAST_ROWS:
            yield label, wrong


def _row(term: str, scope: str, number_format: str, wrong: Sequence[float]) -> EfficiencyRow:
    return EfficiencyRow(
        phase=PHASE,
        term=term,
        scope=scope,
        format=number_format,
        value=1.0,
        spread=float(np.quantile(np.abs(wrong), 0.9)) / Z95,
        count=len(wrong),
        provenance="fitted",
        source=SOURCE,
    )
