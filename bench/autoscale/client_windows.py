"""Streams of requests drawn from what ServeGen publishes of each client of a service.

Of each client and 600 seconds the number of requests is kept as published; where they fall within
is drawn by gaps of the published family and shape, scaled to the window and turned round it by
chance. Lengths are drawn from the client's quantiles of the nearest six hours (in logarithms
between two of them): prompt and answer of a request each by itself, or both of one rank, as
ServeGen's own generator has it. What is published tells neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.autoscale import grid
from bench.autoscale.traces import Trace
from bench.files import BadInput, opened, records
from poolwise.sim.serving.requests import Floats, Integers, Requests

WINDOW_SECONDS, QUANTILES_SECONDS = 600.0, 6 * 3600.0
QUANTILES = {
    "p1": 0.01, "p5": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5,
    "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999,
}  # fmt: skip
INPUT, OUTPUT = "input_tokens", "output_tokens"
GAMMA = "G"
"""Else gaps are Weibull's."""

Key = TypeVar("Key")
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Window:
    """Requests of one client in ten minutes."""

    begin_seconds: float
    requests: int
    family: str
    shape: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of one client in six hours."""

    begin_seconds: float
    quantiles_tokens: tuple[float, ...]

    def at(self, ranks: Floats) -> Integers:
        """Tokens at these shares of the requests; beyond the outermost quantiles, these."""
        known = np.log(np.maximum(self.quantiles_tokens, 1.0))
        told = np.exp(np.interp(ranks, tuple(QUANTILES.values()), known))
        return np.rint(told).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Client:
    """All that is published of one."""

    windows: tuple[Window, ...]
    inputs: tuple[Lengths, ...]
    outputs: tuple[Lengths, ...]

    @property
    def mean_rate(self) -> float:
        """Requests per second over its windows."""
        total = sum(each.requests for each in self.windows)
        return total / (WINDOW_SECONDS * max(len(self.windows), 1))


@cache
def clients(data: Path, model: str) -> tuple[Client, ...]:
    """Those with lengths; raises :class:`BadInput` where a file is missing or a row is unlike."""
    windows: dict[str, list[Window]] = {}
    for name, window in _read(data, f"servegen_{model}_client_windows", _window):
        windows.setdefault(name, []).append(window)
    told: dict[tuple[str, str, str], list[Lengths]] = {}
    for key, lengths in _read(data, "servegen_token_quantiles_6h", _lengths):
        if lengths is not None:
            told.setdefault(key, []).append(lengths)
    return tuple(
        Client(tuple(each), tuple(told[model, name, INPUT]), tuple(told[model, name, OUTPUT]))
        for name, each in windows.items()
        if (model, name, INPUT) in told and (model, name, OUTPUT) in told
    )


def stretch(
    of: tuple[Client, ...],
    name: str,
    begin_seconds: float,
    seconds: float,
    is_coupled: bool,
    seed: int,
) -> Trace:
    """Requests of these clients in so many seconds, as a trace that begins at 0.

    :param is_coupled: whether prompt and answer of a request have one rank.

    Raises :class:`BadInput` where none came.
    """
    draw = np.random.default_rng(seed)
    drawn = [
        _drawn(client, window, is_coupled, draw)
        for client in of
        for window in client.windows
        if begin_seconds <= window.begin_seconds < begin_seconds + seconds and window.requests
    ]
    if not drawn:
        raise BadInput(f"{name}: no request in {seconds:g} s from {begin_seconds:g} s")
    arrivals, inputs, outputs = (np.concatenate(each) for each in zip(*drawn, strict=True))
    order = np.argsort(arrivals)
    requests = Requests.of(
        arrivals[order] - arrivals.min(), inputs[order], outputs[order], np.zeros_like(inputs)
    )
    return Trace(name, requests)


def _drawn(
    client: Client, window: Window, is_coupled: bool, draw: np.random.Generator
) -> tuple[Floats, Integers, Integers]:
    """Arrivals, prompts and answers of one window."""
    count = window.requests
    gaps = (
        draw.gamma(window.shape, size=count + 1)
        if window.family == GAMMA
        else draw.weibull(window.shape, size=count + 1)
    )
    moments = np.cumsum(gaps)
    turned = moments[:-1] / moments[-1] * WINDOW_SECONDS + draw.uniform(0.0, WINDOW_SECONDS)
    ranks = draw.random(count)
    answer_ranks = ranks if is_coupled else draw.random(count)
    return (
        window.begin_seconds + turned % WINDOW_SECONDS,
        _nearest(client.inputs, window).at(ranks),
        _nearest(client.outputs, window).at(answer_ranks),
    )


def _nearest(told: tuple[Lengths, ...], window: Window) -> Lengths:
    middle_seconds = window.begin_seconds + WINDOW_SECONDS / 2.0
    return min(
        told, key=lambda each: abs(each.begin_seconds + QUANTILES_SECONDS / 2.0 - middle_seconds)
    )


def _window(row: dict[str, str]) -> tuple[str, Window]:
    return row["client"], Window(
        float(row["window_start_s"]),
        round(float(row["requests_in_600s"])),
        row["family_g_or_w"],
        float(row["shape"] or 1.0),  # none was fitted to a window without gaps
    )


def _lengths(row: dict[str, str]) -> tuple[tuple[str, str, str], Lengths | None]:
    key = (row["model"], row["client"], row["field"])
    if not row["p50"]:
        return key, None  # nobody came in these hours
    return key, Lengths(float(row["window_start_s"]), tuple(float(row[p]) for p in QUANTILES))


def _read(
    data: Path, name: str, parse: Callable[[dict[str, str]], tuple[Key, Told]]
) -> Iterator[tuple[Key, Told]]:
    path = grid.path_of(data, name)
    with opened(path) as file:
        for number, row in enumerate(records(file), start=2):
            try:
                yield parse(row)
            except (KeyError, ValueError) as error:
                raise BadInput(f"{path}:{number}: {type(error).__name__}: {error}") from error
