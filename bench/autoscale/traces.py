"""Request traces: ``arrival_s,input_tokens,output_tokens`` in .csv or .csv.gz, and their scaling.

A trace is scaled as a service grows: by more users of the same habits, or by fewer. A copy of all
requests comes with an offset of its own (up to a minute, round the end of the trace), so bursts of
one copy stay as they are and do not fall on those of another; of a part of a copy, each request is
kept by a hash of its number. Both leave the rate over minutes as it is. Compressing time instead
would make every swing steeper than any user made it, and repeating each request on the spot would
make bursts that nobody sent.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from poolwise.sim.serving.requests import Requests

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
CACHED = ("cached_tokens", "prefix_reuse_tokens_infinite_cache")
"""Names of the optional column of prompt tokens found in a prefix cache."""
MOST_TOKENS = 10_000_000
DAY_SECONDS = 86400.0
MOST_DAYS = 100
"""Every policy acts each few seconds of a trace: longer ones are in milliseconds, or one row is."""
OFFSET_SECONDS = 60.0
GOLDEN = 0.6180339887498949
"""Multiples of it spread evenly modulo one, however many there are."""


class BadTrace(ValueError):
    """A file that is no trace; the sentence says what is wrong where."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests with a name; the first comes at 0."""

    name: str
    requests: Requests
    complaint: str = ""
    """Of rows that were left out; empty when all were good."""

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        return float(self.requests.arrival_seconds[-1])


def load(path: Path, with_prefixes: bool = False) -> Trace:
    """Read one. Bad rows are left out and named in ``complaint``.

    Raises :class:`BadTrace` for a file without the columns or without any good row, or one that
    spans more than :data:`MOST_DAYS`.
    """
    try:
        with _opened(path) as file:
            table, complaint = _table(path, csv.reader(file), with_prefixes)
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise BadTrace(f"{path}: cannot be read: {error}") from error
    arrivals = table[:, 0]
    days = float(np.ptp(arrivals)) / DAY_SECONDS
    if days > MOST_DAYS:
        raise BadTrace(
            f"{path}: arrival_s spans {days:.0f} days, must be {MOST_DAYS} at most (of seconds)"
        )
    inputs, outputs = table[:, 1].astype(np.int64), table[:, 2].astype(np.int64)
    cached = np.minimum(table[:, 3].astype(np.int64), inputs - 1)
    requests = Requests.of(arrivals - arrivals.min(), inputs, outputs, cached)
    return Trace(path.name.removesuffix(".gz").removesuffix(".csv"), requests, complaint)


def is_trace(path: Path) -> bool:
    """Whether its header has the columns."""
    try:
        with _opened(path) as file:
            header = _header(csv.reader(file))
    except (OSError, UnicodeDecodeError, EOFError, csv.Error):
        return False
    return all(name in header for name in COLUMNS)


def _opened(path: Path) -> IO[str]:
    """As text, whatever mark of its encoding it begins with: spreadsheets write one."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return path.open(newline="", encoding="utf-8-sig")


def _header(rows: Iterator[list[str]]) -> list[str]:
    return [name.strip() for name in next(rows, [])]


def _table(
    path: Path, rows: Iterator[list[str]], with_prefixes: bool
) -> tuple[NDArray[np.float64], str]:
    header = _header(rows)
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise BadTrace(f"{path}: the header has no column {' and no '.join(missing)}")
    found = next((name for name in CACHED if name in header), None) if with_prefixes else None
    places = [header.index(name) for name in COLUMNS]
    places += [header.index(found)] if found else []
    good: list[tuple[float, ...]] = []
    bad: list[str] = []
    for number, row in enumerate(rows, 2):
        try:
            good.append(_values([row[place] for place in places]))
        except (ValueError, IndexError) as error:
            bad.append(f"line {number}: {error}")
    if not good:
        raise BadTrace(f"{path}: no row is a request{f' ({bad[0]})' if bad else ''}")
    rows_in_all = len(bad) + len(good)
    left_out = f"{path}: {len(bad)} of {rows_in_all} rows left out, first {bad[0]}" if bad else ""
    return np.array(good, np.float64), left_out


def _values(cells: list[str]) -> tuple[float, ...]:
    """Arrival, prompt, answer and cached tokens; raises ValueError."""
    arrival, prompt, answer = float(cells[0]), float(cells[1]), float(cells[2])
    cached = float(cells[3] or 0.0) if len(cells) > 3 else 0.0
    if not -1e12 < arrival < 1e12:
        raise ValueError(f"arrival_s is {cells[0]}, must be a number of seconds")
    for name, tokens, cell in zip(COLUMNS[1:], (prompt, answer), cells[1:], strict=False):
        if not 1.0 <= tokens <= MOST_TOKENS:
            raise ValueError(f"{name} is {cell}, must be from 1 to {MOST_TOKENS}")
    if not 0.0 <= cached <= prompt:
        raise ValueError(f"cached tokens are {cells[3]}, must be from 0 to input_tokens")
    return arrival, prompt, answer, cached


def scaled(trace: Trace, factor: float, seed: int = 0) -> Trace:
    """So many times the users. The same seed keeps the same requests."""
    if factor == 1.0 or not factor > 0.0:
        return trace
    whole, part = int(factor), factor - int(factor)
    own, span = trace.requests, trace.seconds
    arrivals, picked = [], []
    for copy in range(whole + bool(part)):
        offset = OFFSET_SECONDS * (copy * GOLDEN % 1.0)
        kept = np.arange(len(own)) if copy < whole else np.flatnonzero(_hashed(own, seed) < part)
        shifted = own.arrival_seconds[kept] + offset
        arrivals.append(np.where(shifted > span, shifted - span, shifted))
        picked.append(kept)
    kept = np.concatenate(picked)
    return Trace(trace.name, _of(own, np.concatenate(arrivals), kept), trace.complaint)


def _hashed(requests: Requests, seed: int) -> NDArray[np.float64]:
    """From 0 to 1, by a request's number: a larger share keeps all that a smaller one kept."""
    return np.random.default_rng(seed).random(len(requests))


def window(trace: Trace, begin_seconds: float, seconds: float) -> Trace:
    """A part of it, which begins at 0."""
    arrivals = trace.requests.arrival_seconds
    kept = np.flatnonzero((arrivals >= begin_seconds) & (arrivals < begin_seconds + seconds))
    if not len(kept):
        raise BadTrace(f"{trace.name}: no request in {seconds:g} s from {begin_seconds:g} s")
    part = _of(trace.requests, arrivals[kept] - begin_seconds, kept)
    return Trace(trace.name, part, trace.complaint)


def _of(own: Requests, arrivals: NDArray[np.float64], kept: NDArray[np.integer]) -> Requests:
    return Requests.of(
        arrivals, own.input_tokens[kept], own.output_tokens[kept], own.cached_tokens[kept]
    )
