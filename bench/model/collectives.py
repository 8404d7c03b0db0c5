"""Target ``collectives``: time of one collective."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.accuracy import accuracy
from bench.fit.collectives import measured, not_fitted, out_of_fold, residuals
from bench.model.results import OUT_OF_FOLD, SHIPPED, Request, Result, indices_by_split
from poolwise.model.efficiency import Calibration

TARGET = "collectives"


def results(request: Request) -> Iterator[Result]:
    """Each split with the shipped constants; out of fold on the open rows."""
    rows = measured(request.folder, request.tables)
    calibration = Calibration(request.tables.efficiencies)
    for split, indices in indices_by_split([each.row for each in rows]).items():
        chosen = [rows[index] for index in indices]
        seconds = np.array([each.seconds for each in chosen])
        predicted = seconds * np.exp(residuals(chosen, calibration))
        yield Result(TARGET, split, SHIPPED, accuracy(predicted, seconds))
        if split == "open" and request.refit:
            refitted = seconds * np.exp(out_of_fold(chosen, not_fitted(request.tables)))
            yield Result(TARGET, split, OUT_OF_FOLD, accuracy(refitted, seconds))
