"""Memory of engines beside weights and cache: ``python -m bench.fit.serving_memory [--write]``.

Engines log at their start what they may use, what the weights took and what is left to the cache;
the rest is activations and reserve. ``bench/engine_logs.csv`` holds published logs of dense models
in 16 bits, each with its source. Steps and sequences are vLLM's defaults on the device where a log
does not state them. Logs of vLLM before 0.7 are left out: until vllm-project/vllm#12126 it counted
what other processes held.

The reserve is the median of what the logs leave beside the formula of activations. The spread of
what is needed is that of its upper side, since that is what a gate needs: with a next log, nine in
ten lie under it on either side (split conformal prediction). With ``--write`` the rows of
``efficiencies_serving.toml`` are replaced; ``bench.fit.serving`` keeps them.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.accuracy import Vector
from bench.columns import GIB
from bench.dates import date_of, span
from bench.fit.rows import Behind, constant_row
from bench.fit.serving_constants import HEADER, PHASE
from bench.fit.shipping import PACKAGE, ship
from bench.tables import Row
from poolwise.model import presets
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.hardware import Device, Host, Interconnect, Machine
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.model.serving.memory import WEIGHTS, WORKING, Footprint, footprint
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.tables import EfficiencyRow, Tables, load
from poolwise.tables.efficiencies import file_of, parse

LOGS = Path(__file__).resolve().parents[1] / "engine_logs.csv"
SOURCE = "bench.fit.serving_memory: start-up logs in bench/engine_logs.csv"
FORMAT = "bf16"
LINK = Interconnect(8, 1e11, 1e11, 8, True)
ANY_LENGTHS = Tokens(1000.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Log:
    """One start of an engine."""

    row: Row
    budget_bytes: float
    weights_bytes: float
    cache_bytes: float
    work: ServingWork
    layout: ServingLayout
    machine: Machine

    @property
    def working_bytes(self) -> float:
        """What is neither weights nor cache."""
        return self.budget_bytes - self.weights_bytes - self.cache_bytes

    def predicted(self, calibration: Calibration) -> Footprint:
        """The model's."""
        return footprint(self.work, self.layout, self.machine, calibration)


def logs(tables: Tables, path: Path = LOGS) -> list[Log]:
    """All published ones."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [_log(row, tables) for row in csv.DictReader(lines)]


def working_ratios(several: Sequence[Log], calibration: Calibration) -> Vector:
    """ln(measured / predicted) of activations and reserve."""
    found = [each.predicted(calibration) for each in several]
    predicted = [each.activations_bytes + each.reserve_bytes for each in found]
    measured = np.array([each.working_bytes for each in several])
    ratios: Vector = np.log(measured / np.array(predicted))
    return ratios


def weights_ratios(several: Sequence[Log], calibration: Calibration) -> Vector:
    """The same of weights."""
    predicted = np.array([each.predicted(calibration).weights_bytes for each in several])
    ratios: Vector = np.log(np.array([each.weights_bytes for each in several]) / predicted)
    return ratios


def fitted(several: Sequence[Log], calibration: Calibration) -> list[EfficiencyRow]:
    """The reserve, and the spreads of working memory and of weights in 16 bits."""
    found = [each.predicted(calibration) for each in several]
    known = calibration.value(PHASE, "reserve_bytes", several[0].machine.device, "vllm")
    others = [each.activations_bytes + each.reserve_bytes - known for each in found]
    left = np.array([each.working_bytes for each in several]) - np.array(others)
    reserve = float(np.median(left))
    with_reserve = calibration.replaced({(PHASE, "reserve_bytes", EVERY, EVERY): reserve})
    working = working_ratios(several, with_reserve)
    weights = np.abs(weights_ratios(several, with_reserve))
    behind = Behind(len(several), span(date_of(each.row) for each in several))
    sources = [each.row["source"].split(":")[0] for each in several]
    return [
        _row("reserve_bytes", EVERY, reserve, _median_deviation(left, sources), behind),
        _row(WORKING, EVERY, 1.0, _upper(working) / NINE_IN_TEN, behind),
        _row(WEIGHTS, FORMAT, 1.0, _upper(weights) / NINE_IN_TEN, behind),
    ]


def _upper(values: Vector) -> float:
    """What the next value is under nineteen times in twenty, as far as so few can tell."""
    level = min(1.0, 0.95 * (1.0 + 1.0 / len(values)))
    return float(np.quantile(values, level))


def _median_deviation(values: Vector, sources: Sequence[str]) -> float:
    """Of ln of the median: the jackknife over sources, each of which is one witness."""
    labels = np.array(sources)
    without = np.log([np.median(values[labels != each]) for each in dict.fromkeys(sources)])
    return float(np.sqrt((len(without) - 1) * np.var(without)))


def _row(
    term: str, number_format: str, value: float, spread: float, behind: Behind
) -> EfficiencyRow:
    return constant_row((PHASE, term, EVERY, number_format), value, behind, spread, SOURCE)


def _log(row: Row, tables: Tables) -> Log:
    cells = row | {"source_date": row["date"]}
    known = tables.model(row["model"])
    assert known is not None, row["model"]
    total_bytes, fraction = float(row["total_gib"]) * GIB, float(row["fraction"])
    device = Device("any", False, "any", total_bytes, 1e12, {FORMAT: 1e14}, 400.0, {})
    return Log(
        row=cells,
        budget_bytes=total_bytes * fraction,
        weights_bytes=float(row["weights_gib"]) * GIB,
        cache_bytes=float(row["cache_gib"]) * GIB,
        work=ServingWork(
            model=presets.model(known),
            requests_per_second=None,
            input_tokens=ANY_LENGTHS,
            output_tokens=ANY_LENGTHS,
            prefix_hit_fraction=0.0,
            max_model_tokens=None,
            targets=(),
            engine=row["engine"],
        ),
        layout=ServingLayout(
            tensor=int(row["tensor"]),
            pipeline=int(row["pipeline"]),
            weight_format=FORMAT,
            max_num_seqs=int(row["sequences"]),
            max_batched_tokens=int(row["batched_tokens"]),
        ),
        machine=Machine(device, LINK, Host(96.0, 1e12, 1e10, 1e11, 5e9)),
    )


def _replaced(rows: Sequence[EfficiencyRow], new: Sequence[EfficiencyRow]) -> list[EfficiencyRow]:
    """New rows where their predecessors were, or at the head."""
    by_key = {_key(each): each for each in new}
    kept = [by_key.pop(_key(row), row) for row in rows]
    return [*by_key.values(), *kept]


def _key(row: EfficiencyRow) -> tuple[str, str, str, str]:
    return row.phase, row.term, row.scope, row.format


def report(several: Sequence[Log], calibration: Calibration) -> Iterator[str]:
    """Each log beside its prediction."""
    for each, ratio in zip(several, working_ratios(several, calibration), strict=True):
        found, gigabytes = each.predicted(calibration), each.working_bytes / 1e9
        predicted = (found.activations_bytes + found.reserve_bytes) / 1e9
        most = predicted + found.more_bytes / 1e9
        yield (
            f"{each.row['model']} x{each.layout.tensor * each.layout.pipeline}: {gigabytes:.2f} GB"
            f" beside weights and cache, {predicted:.2f} predicted ({math.exp(ratio):.2f} times),"
            f" at most {most:.2f}"
        )


def main() -> None:
    """Fit, report, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the shipped constants")
    asked, tables = parser.parse_args(), load()
    several, calibration = logs(tables), Calibration(tables.efficiencies)
    found = fitted(several, calibration)
    print("\n".join(report(several, Calibration(_replaced(tables.efficiencies, found)))))
    print(*(f"{row.term} {row.value:.4g} +- {row.spread:.3f}" for row in found), sep="\n")
    if asked.write:
        path = PACKAGE / file_of(PHASE)
        rows = parse(path.name, path.read_text(encoding="utf-8"))
        ship(PHASE, HEADER, _replaced(rows, found))


if __name__ == "__main__":
    main()
