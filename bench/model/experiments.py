"""Natural experiments: the same job on two accelerators that differ in few resources.

Each is told twice. An *experiment* is two accelerators, a quantity and a regime (what a service
mostly does, how many requests are in flight), as in performance-model.md, C3: medians over its
pairs of rows, read by :mod:`bench.model.dominance`. And pair by pair, where those that the noise
leaves undecided are counted apart; where a job's own repeats differ more than usual, that is its
noise. A median is noisy by the families behind it (one model on one
engine of one source), not by its pairs: a sweep over lengths repeats what is particular to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from bench.jobs import SERVING, TRAINING
from bench.model.choice import Rates, gathered, medians, rates
from bench.model.dominance import Cases, Verdict, pure_cases, verdict
from bench.model.outcome import Outcome, scored
from bench.serving_drafts import drafts
from bench.tables import Row, number
from poolwise.tables import AcceleratorRow, Tables

NATURAL = (
    ("H100-SXM5-80GB", "H200-SXM-141GB"),
    ("B200-SXM-180GB", "B300-SXM"),
    ("B200-SXM-180GB", "GB200-NVL72"),
    ("H200-SXM-141GB", "B200-SXM-180GB"),
    ("H100-SXM5-80GB", "B200-SXM-180GB"),
    ("H100-SXM5-80GB", "H100-PCIe-80GB"),
)
"""Those of performance-model.md, C3: neighbours that differ in few resources."""
LATENCIES = ("tpot", "ttft")
DRAFTS = "drafts"
"""Guessed tokens a step: no column says so, but it is no equal job with and without."""
QUANTITIES = {
    "train_dense": TRAINING,
    "train_moe": TRAINING,
    "tpot": (*SERVING, DRAFTS),
    "ttft": (*SERVING, DRAFTS),
    "offline_throughput": SERVING,
}
REPEATS_DIFFER = {
    "train_dense": 0.11,
    "train_moe": 0.40,
    "tpot": 0.09,
    "ttft": 0.15,
    "offline_throughput": 0.09,
}
"""Spread (largest over smallest less 1) of repeated measurements of one configuration, 90th
percentile (:mod:`bench.model.repeats`): 67 dense training jobs, 36 served ones of one engine
version. DeepSeek on SGLang is left out, whose rows mix recipes with and without prediction (with
it: 26 and 46 % over 47). performance-model.md, C4, has 9 % for ``tpot`` too; its 40 % for training
over releases is taken for mixtures of experts, of which 24 jobs here have 79 %. Nothing offline was
repeated: as ``tpot``."""
MOSTLY = 2.0
"""Ratio of lengths beyond which a service mostly reads or mostly generates."""
FEW, MANY = 8, 32
"""Requests in flight; the bounds of C3."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Experiment:
    """What is compared; ``regime`` is empty for training."""

    before: str
    after: str
    quantity: str
    regime: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One job on two accelerators: logarithms of how much faster the second is."""

    family: tuple[str, ...]
    measured: float
    predicted: float
    noise: float
    """How far two measurements of the same are apart, nine times in ten."""
    cases: Cases

    @property
    def verdict(self) -> Verdict:
        """Of this pair alone."""
        return verdict(self.measured, self.predicted, self.cases, self.noise)


def experiments(outcomes: Iterable[Outcome], tables: Tables) -> list[Entry]:
    """One entry for each experiment, and ``all`` of them together."""
    cells: dict[Experiment, list[Pair]] = {}
    for experiment, pair in paired(scored(outcomes), tables):
        cells.setdefault(experiment, []).append(pair)
    wholes = {experiment: _of_medians(experiment, pairs) for experiment, pairs in cells.items()}
    entries = [_entry(each, pairs, wholes[each]) for each, pairs in sorted(cells.items())]
    every = [pair for pairs in cells.values() for pair in pairs]
    return [*entries, _all(every, list(wholes.values()))]


def paired(counted: Sequence[Outcome], tables: Tables) -> Iterator[tuple[Experiment, Pair]]:
    """Every job that both accelerators of an experiment ran."""
    for quantity, key in QUANTITIES.items():
        chosen = [each for each in counted if each.score == quantity]
        for values, job in gathered(with_drafts(rates(chosen)), key).items():
            row = dict(zip(key, values, strict=True))
            for before, after in NATURAL:
                if before in job and after in job:
                    cases = _cases(before, after, row, tables)
                    regime = _regime(quantity, row, cases != _cases(before, after, {}, tables))
                    pair = _pair(quantity, row, (job[before], job[after]), cases)
                    yield Experiment(before, after, quantity, regime), pair


def _pair(
    quantity: str, row: Row, runs: tuple[Sequence[Rates], Sequence[Rates]], cases: Cases
) -> Pair:
    sign = -1.0 if quantity in LATENCIES else 1.0
    predicted, measured = (
        sign * math.log(new / old) for old, new in zip(*map(medians, runs), strict=True)
    )
    return Pair(
        family=tuple(row.get(column, "") for column in ("source", "engine", "model")),
        measured=measured,
        predicted=predicted,
        noise=max(_usual_noise(quantity), *map(_own_noise, runs)),
        cases=cases,
    )


def _usual_noise(quantity: str) -> float:
    return math.log1p(REPEATS_DIFFER[quantity])


def _own_noise(runs: Sequence[Rates]) -> float:
    measured = [each[1] for each in runs]
    return math.log(max(measured) / min(measured))


def with_drafts(several: Iterable[tuple[Row, Rates]]) -> Iterator[tuple[Row, Rates]]:
    """Served rows with their guessed tokens in a column of their own."""
    for row, each in several:
        yield (row | {DRAFTS: str(drafts(row))} if "mode" in row else row), each


def _cases(before: str, after: str, row: Row, tables: Tables) -> Cases:
    formats = (row.get(each, "") for each in ("precision", "weight_precision", "moe_precision"))
    in_four_bits = any("fp4" in each for each in formats)
    return pure_cases(_known(before, tables), _known(after, tables), in_four_bits=in_four_bits)


def _known(name: str, tables: Tables) -> AcceleratorRow:
    row = tables.accelerator(name)
    assert row is not None, "only rows of known accelerators have predictions"
    return row


def _regime(quantity: str, row: Row, differs_by_format: bool) -> str:
    parts = [_load(quantity, row), "4 bits" if differs_by_format else ""]
    return ", ".join(filter(None, parts))


def _load(quantity: str, row: Row) -> str:
    if quantity == "offline_throughput":
        prompt, output = number(row, "isl") or 1.0, number(row, "osl") or 1.0
        if output >= MOSTLY * prompt:
            return "mostly generating"
        return "mostly reading" if prompt >= MOSTLY * output else "reading and generating"
    if quantity not in LATENCIES:
        return ""
    in_flight = number(row, "concurrency")
    if in_flight is None:
        return "at a rate"
    if in_flight <= FEW:
        return f"1 to {FEW} in flight"
    return f"{FEW + 1} to {MANY} in flight" if in_flight <= MANY else f"over {MANY} in flight"


def _of_medians(experiment: Experiment, pairs: Sequence[Pair]) -> Verdict:
    noise = _usual_noise(experiment.quantity) / math.sqrt(_families(pairs))
    measured = median(pair.measured for pair in pairs)
    return verdict(measured, median(pair.predicted for pair in pairs), pairs[0].cases, noise)


def _families(pairs: Sequence[Pair]) -> int:
    return len({pair.family for pair in pairs})


def _entry(experiment: Experiment, pairs: Sequence[Pair], whole: Verdict) -> Entry:
    return {
        "from": experiment.before,
        "to": experiment.after,
        "quantity": experiment.quantity,
        "regime": experiment.regime,
        "families": _families(pairs),
        "measured_ratio": round(math.exp(median(pair.measured for pair in pairs)), 3),
        "predicted_ratio": round(math.exp(median(pair.predicted for pair in pairs)), 3),
        "dominant_measured": " or ".join(whole.measured),
        "dominant_predicted": " or ".join(whole.predicted),
        "right": whole.is_right if whole.is_decided else None,
        **_of_pairs(pairs),
    }


def _all(pairs: Sequence[Pair], wholes: Sequence[Verdict]) -> Entry:
    decided, right, contradicted = _decided(wholes)
    return {
        "from": "all",
        "to": "all",
        "experiments": len(wholes),
        "decided_experiments": decided,
        "right_experiments_percent": right,
        "contradicted_experiments_percent": contradicted,
        **_of_pairs(pairs),
    }


def _of_pairs(pairs: Sequence[Pair]) -> Entry:
    decided, right, contradicted = _decided([pair.verdict for pair in pairs])
    return {
        "pairs": len(pairs),
        "decided_pairs": decided,
        "right_percent": right,
        "contradicted_percent": contradicted,
        "ratio_error_percent": _ratio_error_percent(pairs),
    }


def _decided(verdicts: Sequence[Verdict]) -> tuple[int, float | None, float | None]:
    """How many, and the shares of them that are right and contradicted, in percent."""
    decided = [each for each in verdicts if each.is_decided]
    if not decided:
        return 0, None, None
    right = 100 * mean(each.is_right for each in decided)
    contradicted = 100 * mean(each.is_contradicted for each in decided)
    return len(decided), round(right, 2), round(contradicted, 2)


def _ratio_error_percent(pairs: Sequence[Pair]) -> float | None:
    if not pairs:
        return None
    wrong = median(abs(pair.predicted - pair.measured) for pair in pairs)
    return round(100 * math.expm1(wrong), 2)
