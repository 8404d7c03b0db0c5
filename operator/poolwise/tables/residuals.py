"""Residuals: what measured runs leave of a figure's formulas, as kernels and weighted sites.

Written by ``python -m bench.fit.residuals`` from published measurements. ``residuals.toml`` has the
kernel of each figure (:mod:`poolwise.model.residual` says what it means), ``residuals_FIGURE.csv``
its sites: one measured configuration a line with its weight, and nothing of what was measured.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from poolwise.errors import TableError
from poolwise.tables.efficiencies import DATE

FILE = "residuals.toml"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NearnessRow(_Strict):
    """Spread of held-out runs that were at least so near to a known one."""

    least: float = Field(ge=0, le=1)
    spread: float = Field(gt=0)
    count: int = Field(ge=1)


class SiteRow(_Strict):
    """A measured configuration."""

    labels: tuple[str, ...]
    coordinates: tuple[float, ...]
    shares: tuple[float, ...]
    weight: float


class ResidualRow(_Strict):
    """The residual of one figure."""

    figure: str
    """``tpot``, ``train``, ...: what the sites' runs measured."""
    source: str
    date: str = Field(pattern=DATE)
    """When those rows were measured."""
    count: int = Field(ge=1)
    """Measured rows behind the weights."""
    noise: float = Field(gt=0)
    """Deviation of ln(measured / predicted) between runs of one configuration."""
    labels: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    """Sets of labels that have a function in common."""
    variance: float = Field(gt=0)
    """Of each function."""
    lengths: dict[str, float]
    """How far a function stays alike, by coordinate."""
    shares: tuple[str, ...] = ()
    """Of a step, that functions follow which span accelerators,"""
    share_length: float = Field(default=math.inf, gt=0)
    """and how far they stay alike."""
    spreads: tuple[NearnessRow, ...]
    sites: tuple[SiteRow, ...] = ()


def load() -> tuple[ResidualRow, ...]:
    """All shipped residuals with sites. Raises TableError for a malformed one."""
    folder = resources.files("poolwise.tables")
    if not (folder / FILE).is_file():
        return ()
    kernels = parse_kernels((folder / FILE).read_text(encoding="utf-8"))
    files = ((row, folder / sites_file(row.figure)) for row in kernels)
    return tuple(
        with_sites(row, file.read_text(encoding="utf-8").splitlines())
        for row, file in files
        if file.is_file()
    )


def sites_file(figure: str) -> str:
    """The shipped file with a figure's sites."""
    return f"residuals_{figure}.csv"


def parse_kernels(text: str) -> tuple[ResidualRow, ...]:
    """Rows without their sites."""
    try:
        return tuple(map(_kernel, tomllib.loads(text).get("residual", [])))
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{FILE}: {error}") from error


def _kernel(document: dict[str, Any]) -> ResidualRow:
    try:
        return ResidualRow.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TableError(f"{FILE}, {document.get('figure')}, {where}: {first['msg']}") from error


def with_sites(row: ResidualRow, lines: Iterable[str]) -> ResidualRow:
    """The kernel with the sites of its CSV file."""
    file = sites_file(row.figure)
    reader = csv.DictReader(lines, strict=True)
    wanted = [*row.labels, *row.lengths, *row.shares, "weight"]
    if reader.fieldnames != wanted:
        raise TableError(f"{file}: columns are {reader.fieldnames}, not {wanted}")
    try:
        sites = tuple(_site(row, cells) for cells in reader)
    except (ValueError, TypeError) as error:
        raise TableError(f"{file} line {reader.line_num}: {error}") from error
    return row.model_copy(update={"sites": sites})


def _site(row: ResidualRow, cells: dict[str, str]) -> SiteRow:
    return SiteRow.model_construct(
        labels=tuple(cells[name] for name in row.labels),
        coordinates=tuple(float(cells[name]) for name in row.lengths),
        shares=tuple(float(cells[name]) for name in row.shares),
        weight=float(cells["weight"]),
    )
