"""Does the model pick the faster accelerator? Rows that are equal in all but ``gpu``.

A job is a set of such rows; each accelerator counts with the median of its rows. Pairs whose
measurements differ by at most 5 % are left out: repeated measurements differ by as much.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean, median

from scipy.stats import kendalltau

from bench.jobs import SERVING, TRAINING
from bench.model.outcome import Outcome, scored
from bench.tables import Row, number

APART = 1.05
Rates = tuple[float, float]
"""Predicted and measured; more is better."""
Job = Mapping[str, Rates]
"""By accelerator."""
Runs = Mapping[str, Sequence[Rates]]
"""By accelerator, too."""
Values = tuple[str, ...]


def choices(*several: Iterable[Outcome]) -> dict[str, dict[str, float | int | None]]:
    """``train`` and ``serve``: pairs, share ranked right, Kendall's tau, mean regret.

    Jobs are of rows in one of these lists: what one set of constants predicts side by side.
    """
    lists = [scored(outcomes) for outcomes in several]
    return {
        "train": summary([job for each in lists for job in training_jobs(each)]),
        "serve": summary([job for each in lists for job in serving_jobs(each)]),
    }


def training_jobs(counted: Iterable[Outcome]) -> list[Job]:
    """That several accelerators ran."""
    training = [each for each in counted if each.score in ("train_dense", "train_moe")]
    return jobs(rates(training), TRAINING)


def serving_jobs(counted: Iterable[Outcome]) -> list[Job]:
    """That several accelerators served."""
    return jobs(_serving_rates(counted), SERVING)


def decided(several: Iterable[Job]) -> set[tuple[str, str]]:
    """Accelerators that differ in some job."""
    return {
        (one, other)
        for job in several
        for one, other in itertools.combinations(sorted(job), 2)
        if _differ(job[one], job[other])
    }


def rates(outcomes: Iterable[Outcome]) -> list[tuple[Row, Rates]]:
    """What was predicted and measured, row by row."""
    return [(each.row, (each.predicted.mid, each.measured)) for each in outcomes if each.predicted]


def gathered(several: Iterable[tuple[Row, Rates]], key: Sequence[str]) -> dict[Values, Runs]:
    """Runs of each job, by the values of the columns that all its rows share."""
    found: dict[Values, dict[str, list[Rates]]] = {}
    for row, each in several:
        values = tuple(row.get(column, "") for column in key)
        found.setdefault(values, {}).setdefault(row["gpu"], []).append(each)
    return dict(found)


def jobs(several: Iterable[tuple[Row, Rates]], key: Sequence[str]) -> list[Job]:
    """Jobs that several accelerators ran."""
    every = gathered(several, key).values()
    return [{gpu: medians(runs) for gpu, runs in job.items()} for job in every if len(job) > 1]


def medians(runs: Sequence[Rates]) -> Rates:
    """Of several runs of one job on one accelerator."""
    return median(each[0] for each in runs), median(each[1] for each in runs)


def summary(several: Sequence[Job]) -> dict[str, float | int | None]:
    """In percent, but for the count and tau; None where there is no pair."""
    pairs = [pair for job in several for pair in _pairs(job)]
    if not pairs:
        return {"pairs": 0, "correct": None, "kendall": None, "mean_regret": None}
    right = [(a[0] > b[0]) == (a[1] > b[1]) for a, b in pairs]
    ranked = [job for job in several if _pairs(job)]
    return {
        "pairs": len(pairs),
        "correct": round(100 * mean(right), 2),
        "kendall": round(mean(map(_kendall, ranked)), 4),
        "mean_regret": round(100 * mean(map(_regret, ranked)), 3),
    }


def _pairs(job: Job) -> list[tuple[Rates, Rates]]:
    return [(a, b) for a, b in itertools.combinations(job.values(), 2) if _differ(a, b)]


def _differ(a: Rates, b: Rates) -> bool:
    return max(a[1], b[1]) > APART * min(a[1], b[1])


def _kendall(job: Job) -> float:
    found = float(kendalltau(*zip(*job.values(), strict=True)).statistic)
    return 0.0 if math.isnan(found) else found


def _regret(job: Job) -> float:
    """Rate lost by the accelerator that is predicted to be the fastest."""
    chosen = max(job.values(), key=lambda each: each[0])
    return max(each[1] for each in job.values()) / chosen[1] - 1


def _serving_rates(counted: Iterable[Outcome]) -> list[tuple[Row, Rates]]:
    """Throughputs, and one over the time of a request where first and later tokens are known."""
    named: dict[str, dict[str, Outcome]] = {}
    for each in counted:
        named.setdefault(each.score, {})[each.row["row_id"]] = each
    found = rates(named.get("offline_throughput", {}).values())
    for first, later in (("ttft", "tpot"), ("ttft_disagg", "tpot_disagg")):
        firsts, laters = named.get(first, {}), named.get(later, {})
        for row_id in firsts.keys() & laters.keys():
            found.append(_request_rate(firsts[row_id], laters[row_id]))
    return found


def _request_rate(first: Outcome, later: Outcome) -> tuple[Row, Rates]:
    tokens = (number(first.row, "osl") or 1.0) - 1.0

    def rate(of: Callable[[Outcome], float]) -> float:
        return 1.0 / (of(first) + tokens * of(later))

    predicted = rate(lambda each: each.predicted.mid if each.predicted else math.nan)
    return first.row, (predicted, rate(lambda each: each.measured))
