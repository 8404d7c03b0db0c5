"""Least squares where a constant is a product of factors, each with its prior.

The residuals depend on a factor only through its constant, so one difference quotient per constant
serves all of its factors: that makes hundreds of factors cheap (Gauss-Newton with damping, soft L1
loss by reweighting, and the factors' priors as a ridge).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import Vector
from bench.fit.kriging import Matrix
from bench.fit.uncertainty import covariance, deviation

NOISE = 0.1
"""Scatter of ln(measured) that no formula explains."""
STEP = 1e-3
STEPS = 40
DAMPINGS = 8
ENOUGH = 3e-4
"""Relative gain below which the search ends."""

Values = Mapping[str, Vector]
Predict = Callable[[Values], Vector]
"""ln(seconds) of all rows for given constants, an array of one value per row each."""


@dataclass(frozen=True, slots=True)
class Factored:
    """A constant: its start, the width of its common value, and the widths of its factors."""

    start: float
    width: float
    levels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Parameter:
    term: str
    level: str | None
    key: object
    width: float


class Levels:
    """Factors of some constants over rows with known keys."""

    def __init__(self, terms: Mapping[str, Factored], keys: Sequence[Mapping[str, object]]) -> None:
        """``keys`` gives for each row the key of each level."""
        self.terms, self.rows = terms, len(keys)
        self.parameters: list[_Parameter] = []
        self._columns: dict[str, list[NDArray[np.int64]]] = {}
        for term, factored in terms.items():
            self._columns[term] = [np.full(self.rows, self._add(term, None, None, factored.width))]
            for level, width in factored.levels.items():
                column = {
                    key: self._add(term, level, key, width)
                    for key in dict.fromkeys(each[level] for each in keys)
                }
                self._columns[term].append(
                    np.array([column[each[level]] for each in keys], dtype=np.int64)
                )
        self.widths = np.array([each.width for each in self.parameters])

    def _add(self, term: str, level: str | None, key: object, width: float) -> int:
        self.parameters.append(_Parameter(term, level, key, width))
        return len(self.parameters) - 1

    def values(self, parameters: Vector) -> dict[str, Vector]:
        """Each constant of each row."""
        return {
            term: factored.start
            * np.exp(np.sum([parameters[column] for column in self._columns[term]], axis=0))
            for term, factored in self.terms.items()
        }

    def fit(
        self, predict: Predict, measured: Vector, weights: Vector, start: Vector | None = None
    ) -> Vector:
        """Parameters that minimise the soft L1 loss of ln(predicted / measured)."""
        parameters = np.zeros(len(self.parameters)) if start is None else start
        damping = 1e-3
        for _ in range(STEPS):
            errors, slopes = self._slopes(predict, parameters, measured)
            before = self._loss(errors, weights, parameters)
            for _ in range(DAMPINGS):
                trial = parameters + self._step(errors, slopes, weights, parameters, damping)
                loss = self._loss(predict(self.values(trial)) - measured, weights, trial)
                if loss < before:
                    break
                damping *= 6
            else:
                return parameters
            parameters, damping = trial, max(damping / 5, 1e-7)
            if before - loss < ENOUGH * before:
                break
        return parameters

    def covariance(
        self,
        predict: Predict,
        parameters: Vector,
        measured: Vector,
        weights: Vector,
        groups: Sequence[Hashable],
    ) -> Matrix:
        """Of fitted parameters (:mod:`bench.fit.uncertainty`)."""
        errors, slopes = self._slopes(predict, parameters, measured)
        return covariance(slopes, errors, self._sturdy(errors, weights), self.widths, groups)

    def deviation(self, known: Matrix, term: str, levels: Mapping[str, object]) -> float:
        """Of ln of a constant with these factors; a key that no row has is not one of them."""
        wanted = {(term, None, None), *((term, level, key) for level, key in levels.items())}
        return deviation(
            known,
            (
                index
                for index, each in enumerate(self.parameters)
                if (each.term, each.level, each.key) in wanted
            ),
        )

    def _sturdy(self, errors: Vector, weights: Vector) -> Vector:
        """Weights of a step: less for wild rows."""
        sturdy: Vector = weights / np.sqrt(1 + (errors / NOISE) ** 2) / NOISE**2
        return sturdy

    def _slopes(
        self, predict: Predict, parameters: Vector, measured: Vector
    ) -> tuple[Vector, Vector]:
        values = self.values(parameters)
        now = predict(values)
        slopes = np.zeros((self.rows, len(parameters)))
        rows = np.arange(self.rows)
        for term, columns in self._columns.items():
            moved = predict({**values, term: values[term] * np.exp(STEP)})
            for column in columns:
                slopes[rows, column] += (moved - now) / STEP
        return now - measured, slopes

    def _step(
        self, errors: Vector, slopes: Vector, weights: Vector, parameters: Vector, damping: float
    ) -> Vector:
        weight = self._sturdy(errors, weights)
        prior = self.widths**-2
        weighted = slopes * weight[:, None]
        curvature = weighted.T @ slopes + np.diag(prior)
        downhill = -(weighted.T @ errors + prior * parameters)
        damped = curvature + damping * np.diag(np.diag(curvature))
        return np.clip(np.linalg.solve(damped, downhill), -1, 1)

    def _loss(self, errors: Vector, weights: Vector, parameters: Vector) -> float:
        loss = 2 * (np.sqrt(1 + (errors / NOISE) ** 2) - 1)
        return float(np.sum(weights * loss) + np.sum((parameters / self.widths) ** 2))
