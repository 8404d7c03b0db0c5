"""Dynamo's load predictors, of which the constant and the Kalman one are run.

Source: ``dynamo:components/src/dynamo/planner/core/load/predictors.py``. Its default, auto-ARIMA,
is fitted once, on the first five intervals of 180 s, and keeps the order that they show; Dynamo
itself recommends Kalman for bursty load. Values that are not finite count as 0, zeros before the
first other value do not count.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

Q_LEVEL = 1.0
Q_TREND = 0.1
R = 10.0
START_VARIANCE = 1000.0


class Predictor(Protocol):
    """One figure of the traffic."""

    def add(self, value: float) -> None:
        """What the interval brought."""

    def next(self) -> float:
        """What the next interval brings."""


class Constant:
    """As the last one."""

    def __init__(self) -> None:
        self._last = 0.0

    def add(self, value: float) -> None:
        """Keep it."""
        self._last = value if math.isfinite(value) else 0.0

    def next(self) -> float:
        """The last value."""
        return self._last


class Kalman:
    """Level and trend, each a random walk (q 1 and 0.1, r 10); one step ahead."""

    def __init__(self) -> None:
        self._state: np.ndarray | None = None
        self._covariance = np.eye(2) * START_VARIANCE
        self._is_ahead = False

    def add(self, value: float) -> None:
        """One observation; predicts first unless that was asked for already."""
        value = value if math.isfinite(value) else 0.0
        if self._state is None:
            if value != 0.0:
                self._state = np.array([value, 0.0])
            return
        if not self._is_ahead:
            self._predict(self._state)
        self._update(value)
        self._is_ahead = False

    def next(self) -> float:
        """The level one interval ahead; 0 before the first observation."""
        if self._state is None:
            return 0.0
        if not self._is_ahead:
            self._predict(self._state)
            self._is_ahead = True
        return float(self._state[0])

    def _predict(self, state: np.ndarray) -> None:
        step = np.array([[1.0, 1.0], [0.0, 1.0]])
        self._state = step @ state
        self._covariance = step @ self._covariance @ step.T + np.diag([Q_LEVEL, Q_TREND])

    def _update(self, value: float) -> None:
        assert self._state is not None
        gain = self._covariance[:, 0] / (self._covariance[0, 0] + R)
        self._state = self._state + gain * (value - self._state[0])
        self._covariance = self._covariance - np.outer(gain, self._covariance[0])


PREDICTORS: dict[str, type[Constant] | type[Kalman]] = {"constant": Constant, "kalman": Kalman}
