"""Measured runs as sites, with what the formulas leave of them.

A run is seen through the constants of each fold: what a fold's residual is fitted on must be left
by the constants that will predict beside it, and neither may have seen the fold's runs.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from bench.accuracy import FOLDS, Vector, fold_of
from bench.calibrations import Calibrations
from bench.dates import date_of
from bench.fit.kriging import Matrix
from bench.fit.open_rows import open_rows, some
from bench.jobs import JOBS, job_folds
from bench.model import serving
from bench.model.outcome import Outcome, Target
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.site import COORDINATES, LABELS, SHARES
from poolwise.model.site import Site
from poolwise.tables import Tables

MOST_ROWS = 16
"""Of one group: a group of 200 runs knows no more than one of 16."""
KINDS = ("", JOBS)
"""Of folds."""
ALL = len(KINDS) * FOLDS
"""Column of what the constants leave that were fitted on every run."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A score with a residual."""

    name: str
    target: Target
    labels: tuple[str, ...]
    coordinates: tuple[str, ...]
    shares: tuple[str, ...]


FIGURES = tuple(
    Figure(name, serving.TARGET, LABELS, COORDINATES, SHARES)
    for name in ("tpot", "ttft", "offline_throughput")
)
"""Those whose residuals tell of runs left out. Of training steps they do not (5.2 % became 5.4 with
the kernel chosen on other runs), nor of workers apart (21.6 % became 22.5)."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one figure, in an order that does not depend on the file's."""

    sites: list[Site]
    """With shares by the constants of all."""
    groups: list[str]
    slowness: Vector
    """ln(measured / predicted) of the time: a row per run, a column per fold of each kind whose
    constants predicted it, and a last one for the constants of all."""
    job_folds: list[int]
    """The fold of each run's jobs."""
    shares: Matrix
    """Of each run's step, as the constants of each column have it."""
    dates: list[str]
    """When each run was measured."""

    @property
    def folds(self) -> Vector:
        """The fold of each run's group."""
        return np.array([fold_of(group) for group in self.groups])

    @property
    def out_of_fold(self) -> Vector:
        """What the constants leave that never saw the run."""
        found: Vector = self.slowness[np.arange(len(self.sites)), self.folds]
        return found

    def seen_by(self, columns: Iterable[int]) -> list[Site]:
        """Sites with shares by the constants of these columns, one for each run."""
        return [
            replace(site, shares=tuple(shares[column].tolist()))
            for site, shares, column in zip(self.sites, self.shares, columns, strict=True)
        ]

    def label(self, index: int) -> list[str]:
        """One label of each run."""
        return [site.labels[index] for site in self.sites]

    def thinned(self) -> Runs:
        """At most :data:`MOST_ROWS` of each group."""
        counts: Counter[str] = Counter()
        kept = []
        for index, group in enumerate(self.groups):
            counts[group] += 1
            if counts[group] <= MOST_ROWS:
                kept.append(index)
        return Runs(
            [self.sites[index] for index in kept],
            [self.groups[index] for index in kept],
            self.slowness[kept],
            [self.job_folds[index] for index in kept],
            self.shares[kept],
            [self.dates[index] for index in kept],
        )


def shipped_runs(folder: Path, tables: Tables) -> dict[str, Runs]:
    """Of each figure: the open rows, as the shipped constants and those of each fold see them."""
    found: dict[str, Runs] = {}
    for target in dict.fromkeys(figure.target for figure in FIGURES):
        rows = open_rows(folder, target.table)
        of_kinds = [Calibrations.load(target.phases, tables, kind) for kind in KINDS]
        columns = [each.without[fold].formulas for each in of_kinds for fold in range(FOLDS)]
        columns.append(of_kinds[0].shipped.formulas)
        several = runs(target, rows, tables, columns)
        found |= some(several.items(), folder, target.table)
    return found


def runs(
    target: Target, rows: Sequence[Row], tables: Tables, columns: Iterable[Calibration]
) -> dict[str, Runs]:
    """Of each figure that has some, through each of several calibrations (without residuals)."""
    seen = [
        dict(_located(target.outcomes(rows, tables, partial(always, each)))) for each in columns
    ]
    folds = job_folds(rows)
    found = {
        figure.name: _runs([_only(each, figure.name) for each in seen], folds)
        for figure in FIGURES
        if figure.target is target
    }
    return {name: several for name, several in found.items() if several.sites}


def always(calibration: Calibration, _: Row) -> Calibration:
    """The same for every row."""
    return calibration


_Key = tuple[str, str]


def _located(outcomes: Iterable[Outcome]) -> Iterator[tuple[_Key, Outcome]]:
    for each in outcomes:
        if each.site and each.predicted and each.measured > 0.0:
            yield (each.score, each.row["row_id"]), each


def _only(seen: Mapping[_Key, Outcome], score: str) -> dict[_Key, Outcome]:
    return {key: each for key, each in seen.items() if each.score == score}


def _runs(seen: Sequence[Mapping[_Key, Outcome]], job_folds: Mapping[str, int]) -> Runs:
    everywhere = set.intersection(*(set(each) for each in seen))
    keys = sorted(everywhere, key=lambda key: (zlib.crc32(key[1].encode()), key))
    last = seen[-1]
    return Runs(
        [site for key in keys if (site := last[key].site)],
        [last[key].row["group"] for key in keys],
        np.array([[each[key].log_slowness for each in seen] for key in keys]),
        [job_folds[last[key].row["row_id"]] for key in keys],
        np.array([[_shares(each[key]) for each in seen] for key in keys]),
        [date_of(last[key].row) for key in keys],
    )


def _shares(seen: Outcome) -> tuple[float, ...]:
    return seen.site.shares if seen.site else ()
