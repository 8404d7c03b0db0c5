"""The document as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.model.leave_one_out import UNITS
from bench.model.scores import ERRORS

TITLES = ("MdAPE %", "MAPE %", "p90 %", "Spearman", "in 90 %")


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Scores, what is not predicted, choices, experiments."""
    columns = ("rows", "eligible", "predicted", *TITLES)
    yield f"{'score':<20}" + "".join(f"{each:>10}" for each in columns)
    for name, score in document["scores"].items():
        yield _score(name, score)
    for split, scores in document.get("by_split", {}).items():
        yield from (_score(f"{split} {name}", score) for name, score in scores.items())
    for reason, count in document["unpredicted"].items():
        yield f"not predicted: {count:>5}  {reason}"
    for reason, count in document["unread"].items():
        yield f"not read: {count:>10}  {reason}"
    yield from _choices("choice", document["choice"])
    yield from map(_experiment, document["experiments"])
    left_out = document.get("leave_one_out", {})
    for unit in UNITS.keys() & left_out.keys():
        yield f"each {unit} left out of the fit:"
        scores = left_out[unit]["scores"]
        yield from (_score(f"  {name}", score) for name, score in scores.items())
        yield from _choices("  choice of two new", left_out[unit].get("choice", {}))
        yield from _choices(
            "  choice beside a known", left_out[unit].get("choice_beside_known", {})
        )
    for name, each in left_out.get("against_aiconfigurator", {}).items():
        ours, rival = (f"{each[who]['mdape']:.1f} %" for who in ("ours", "rival"))
        yield f"{name}: {each['rows']} rows, ours {ours}, aiconfigurator {rival}"


def _choices(title: str, choices: Mapping[str, Any]) -> Iterator[str]:
    for kind, found in choices.items():
        yield f"{title}, {kind}: " + ", ".join(f"{key} {value}" for key, value in found.items())


def _score(name: str, score: Mapping[str, float | int | None]) -> str:
    counts = "".join(f"{score[key]:>10}" for key in ("rows", "eligible", "predicted"))
    return f"{name:<20}{counts}" + "".join(_figure(score[key]) for key in ERRORS)


def _figure(value: float | int | None) -> str:
    return f"{'':>10}" if value is None else f"{value:>10.3g}"


def _experiment(entry: Mapping[str, Any]) -> str:
    pairs = f"{entry['decided_pairs']} of {entry['pairs']} pairs decided"
    if entry["right_percent"] is not None:
        pairs += f", {entry['right_percent']} % of them right"
        pairs += f" and {entry['contradicted_percent']} % contradicted"
    if "quantity" not in entry:
        return (
            f"experiments, all: {entry['decided_experiments']} of {entry['experiments']} decided, "
            f"{entry['right_experiments_percent']} % of them right; {pairs}"
        )
    where = f"{entry['from']} -> {entry['to']}, {entry['quantity']} {entry['regime']}"
    verdict = {True: "right", False: "wrong", None: "undecided"}[entry["right"]]
    return (
        f"experiment {where}: x{entry['measured_ratio']} measured, x{entry['predicted_ratio']} "
        f"predicted, {verdict} ({entry['dominant_measured']}); {pairs}"
    )
