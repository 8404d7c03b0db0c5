"""WVA's online tuner: an extended Kalman filter on (alpha, beta, gamma) from mean TTFT and ITL.

Source: ``internal/engines/analyzers/queueingmodel/{analyzer.go,tuner/}``. The state stands still
but for noise of 5 % a step; the measurement is the queueing model; an update whose normalised
innovation squared is 7.378 or more is thrown away. It begins with what a sweep of one engine
measured (WVA's parameter estimation before a deployment); its own guess from the first metrics
holds for an idle engine only, and of one under load it is so far off that every update is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.autoscale.policies.service import ForwardPass
from bench.autoscale.policies.wva_queueing import Parameters, RequestSize, solved

ERROR_LEVEL = 0.05
T_PERCENTILE = 1.96
PERCENT_CHANGE = 0.05
LEAST_FACTOR = 0.01
MOST_FACTOR = 100.0
MAX_NIS = 7.378
BASE_FACTOR = 0.9
QUEUE_TO_BATCH = 10
DEFAULT_STATE = (5.0, 0.05, 0.00005)
STEP = 1e-4
"""Relative step of the numerical Jacobian."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One replica's last minutes."""

    requests_per_second: float
    size: RequestSize
    ttft_milliseconds: float
    token_milliseconds: float


def guessed(observed: Observed) -> tuple[float, float, float] | None:
    """``guessInitState``: 90 % of ITL is alpha, the rest solves both equations; None unless > 0."""
    alpha = BASE_FACTOR * observed.token_milliseconds
    both = (observed.ttft_milliseconds - alpha) / observed.size.input_tokens
    read = observed.size.input_tokens + (observed.size.output_tokens + 1.0) / 2.0 - 1.0
    gamma = (observed.token_milliseconds - alpha - both) / read
    state = (alpha, both - gamma, gamma)
    return state if min(state) > 0.0 else None


def swept(profile: Sequence[ForwardPass]) -> tuple[float, float, float]:
    """Least squares of iterations' times, in milliseconds, on tokens computed and tokens read."""
    inputs = np.array([[1.0, each.prefill_tokens, each.decode_kv_tokens] for each in profile])
    seconds = np.array([each.seconds for each in profile])
    found = np.linalg.lstsq(inputs, seconds * 1000.0, rcond=None)[0]
    alpha, beta, gamma = (max(float(each), 1e-9) for each in found)
    return alpha, beta, gamma


class Tuner:
    """The filter of one variant; every replica with traffic is one measurement."""

    def __init__(self, sequences: int, profile: Sequence[ForwardPass] = ()) -> None:
        self._sequences = sequences
        self._state: np.ndarray | None = None
        self._covariance = np.zeros((3, 3))
        self._bounds = (np.zeros(3), np.zeros(3))
        if profile:
            self._begin(swept(profile))

    @property
    def parameters(self) -> Parameters | None:
        """What is learned; None before the first measurement."""
        return None if self._state is None else Parameters(*(float(each) for each in self._state))

    def learn(self, observed: Observed) -> None:
        """One step of the filter, undone where it does not hold."""
        if self._state is None:
            self._begin(guessed(observed) or DEFAULT_STATE)
        assert self._state is not None
        noise = np.diag((PERCENT_CHANGE * self._state) ** 2)
        prior = self._covariance + noise
        steps = np.diag(STEP * self._state)
        around = np.concatenate((self._state[None], self._state + steps, self._state - steps))
        measured = self._measured(around, observed)
        if np.isnan(measured).any():
            return  # a rate that the model cannot serve
        expected = measured[0]
        slope = ((measured[1:4] - measured[4:]) / (2.0 * steps.sum(axis=1))[:, None]).T
        seen = np.array([observed.ttft_milliseconds, observed.token_milliseconds])
        spread = slope @ prior @ slope.T + np.diag((ERROR_LEVEL / T_PERCENTILE * seen) ** 2)
        innovation = seen - expected
        if innovation @ np.linalg.solve(spread, innovation) >= MAX_NIS:
            return
        gain = np.linalg.solve(spread, slope @ prior).T
        state = np.clip(self._state + gain @ innovation, *self._bounds)
        if state.min() > 0.0:
            self._state = state
            self._covariance = (np.eye(3) - gain @ slope) @ prior

    def _begin(self, state: tuple[float, float, float]) -> None:
        self._state = np.array(state)
        self._covariance = np.diag((PERCENT_CHANGE * self._state) ** 2)
        self._bounds = (LEAST_FACTOR * self._state, MOST_FACTOR * self._state)

    def _measured(self, states: np.ndarray, observed: Observed) -> np.ndarray:
        """Mean TTFT (waiting and prefill) and ITL by rows of states."""
        room = self._sequences * QUEUE_TO_BATCH
        rate = observed.requests_per_second
        _, wait, prefill, token = solved(states, observed.size, self._sequences, room, rate)
        return np.array([wait + prefill, token]).T
