"""Errors of many outcomes, by name and by what their rows have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.stats import spearmanr

from bench.model.outcome import Outcome, scored

Score = dict[str, float | int | None]
NAMES = (
    "train_dense", "train_moe", "tpot", "ttft", "tpot_disagg", "ttft_disagg", "tpot_p99",
    "ttft_p99", "offline_throughput", "collectives", "kernels", "peak_memory",
)  # fmt: skip
DIGITS = 3


def score(outcomes: Sequence[Outcome]) -> Score:
    """Counts, and errors in percent of what was measured; None where nothing is predicted."""
    counted = scored(outcomes)
    counts = {
        "rows": len(outcomes),
        "eligible": sum(each.is_eligible for each in outcomes),
        "predicted": len(counted),
    }
    return {**counts, **(_errors(counted) if counted else dict.fromkeys(ERRORS))}


ERRORS = ("mdape", "mape", "p90", "spearman", "coverage90")


def _errors(counted: Sequence[Outcome]) -> Score:
    wrong = 100 * np.abs(np.expm1([each.error for each in counted]))
    figures = (
        np.median(wrong),
        np.mean(wrong),
        np.percentile(wrong, 90),
        _rank_correlation(counted),
        100 * np.mean([each.is_covered for each in counted]),
    )
    rounded = (round(float(each), DIGITS) for each in figures)
    return {
        name: value if value == value else None for name, value in zip(ERRORS, rounded, strict=True)
    }


def _rank_correlation(counted: Sequence[Outcome]) -> float:
    measured = [each.measured for each in counted]
    predicted = [each.predicted.mid for each in counted if each.predicted]
    if len(set(measured)) < 2 or len(set(predicted)) < 2:
        return float("nan")
    return float(spearmanr(predicted, measured).statistic)


def by_name(outcomes: Iterable[Outcome]) -> dict[str, Score]:
    """One score for each name that has rows, in the order of :data:`NAMES`."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.score, []).append(each)
    return {name: score(found[name]) for name in NAMES if name in found}


def grouped(
    outcomes: Iterable[Outcome], label: Callable[[Outcome], str]
) -> dict[str, dict[str, Score]]:
    """Scores by name within each label; rows with an empty label are left out."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(label(each), []).append(each)
    return {key: by_name(found[key]) for key in sorted(found) if key}


def unpredicted(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Eligible figures without a prediction, by reason, the most frequent first."""
    reasons = Counter(each.reason for each in outcomes if each.is_eligible and not each.predicted)
    return dict(reasons.most_common())
