"""``python -m bench.model.page --data DIR``: write docs/accuracy.md and its pictures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.files import BadInput
from bench.model import plots
from bench.model.attained import attained
from bench.model.counted import unstated
from bench.model.document import document
from bench.model.leave_one_out import UNITS, leave_one_out
from bench.model.own import own_scores
from bench.model.targets import compared, outcomes, stated
from bench.pictures import style
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.tables import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = DOCS / "pictures" / "accuracy"
TEMPLATE = Path(__file__).with_name("page.md")
BARS = {
    "train_dense": (6, 10),
    "train_moe": (13, 17),
    "tpot": (9, 14),
    "ttft": (20, 27),
    "offline_throughput": (8, 11),
    "collectives": (9, 22),
    "kernels": (15, 25),
    "peak_memory": (10, None),
}
"""Median error aimed at, in percent: unseen groups, unseen accelerators or models."""
UNKNOWN = "-"


@ends_on_bad_input
def main() -> None:
    """Score, refit without each unit, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--left-out", type=Path, help="the JSON of an earlier --leave-one-out")
    asked = parser.parse_args()
    tables, rows = load(), stated(asked.data)
    if not rows:
        raise BadInput(f"{asked.data}: its tables have no row")
    found = list(outcomes(asked.data, tables))
    scores = document(rows, found, list(compared(asked.data, tables)), tables)
    scores["unstated"] = unstated(found)
    scores["own"] = own_scores(tables)
    scores["leave_one_out"] = (
        json.loads(asked.left_out.read_text(encoding="utf-8"))["leave_one_out"]
        if asked.left_out
        else leave_one_out(asked.data)
    )
    style.save(
        PICTURES / "predicted.svg",
        plots.predicted_against_measured(found),
        "Predicted and measured",
    )
    style.save(
        PICTURES / "accelerators.svg", plots.error_by_accelerator(scores), "Error by accelerator"
    )
    under = attained(found, plots.ROOFED, tables)
    style.save(
        PICTURES / "rooflines.svg",
        plots.rooflines(under, tables),
        "What was measured, under the roofs",
    )
    (DOCS / "accuracy.md").write_text(page(scores), encoding="utf-8")


def page(scores: Mapping[str, Any]) -> str:
    """The text with its tables filled in."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, table in {
        "COUNTED": _counted(scores),
        "SCORES": _scores(scores),
        "UNSTATED": _unstated(scores),
        "CHOICES": _choices(scores),
        "EXPERIMENTS": _experiments(scores),
        "SOURCES": _sources(scores),
        "OWN": _own(scores),
        "UNITS": _units(scores),
        "RIVAL": _rival(scores),
        "UNPREDICTED": _unpredicted(scores),
    }.items():
        text = text.replace(f"<!-- {name} -->", "\n".join(table))
    return text


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row(*["---"] * len(cells))]


def _figure(value: float | int | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}"


PLACES = {
    "scored": "have a figure that is scored",
    "unpredicted": "are eligible and not predicted",
    "unstated": "are predicted without being eligible, and count in no score",
    "unknowable": "leave out what no prediction can do without (lengths, layout, model)",
    "unread": "state it as something else than a number above 0",
    "without_figure": "have no figure that is scored (a training's minutes, a single batch, ...)",
    "rows": "all",
}
"""Of rows (:class:`bench.model.counted.Counted`), in words."""


def _counted(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("rows of the tables", "count")
    for place, words in PLACES.items():
        yield _row(words, f"{scores['counted'][place]:,}")


def _unstated(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("not eligible, yet predicted", "figures", "median", "mean", "p90", "in 90 %")
    for name, score in scores["unstated"].items():
        yield _row(name, *_errors(score))


def _errors(score: Mapping[str, Any]) -> Iterator[str]:
    """How many are predicted, and how well."""
    yield str(score["predicted"])
    yield from (_figure(score[error]) for error in ("mdape", "mape", "p90", "coverage90"))


def _scores(scores: Mapping[str, Any]) -> Iterator[str]:
    left_out = scores["leave_one_out"]
    yield from _head(
        "score", "rows", "eligible", "predicted", "median", "aim", "mean", "p90", "rank", "in 90 %",
        "accelerator left out", "model left out", "aim",
    )  # fmt: skip
    for name, score in scores["scores"].items():
        aim, unseen = BARS.get(name, (None, None))
        units = [
            left_out[kind]["scores"].get(name, {}).get("mdape") for kind in ("accelerator", "model")
        ]
        yield _row(
            name,
            *(score[key] for key in ("rows", "eligible", "predicted")),
            *map(_figure, (score["mdape"], aim, score["mape"], score["p90"], score["spearman"])),
            *map(_figure, (score["coverage90"], *units, unseen)),
        )


def _choices(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("", "pairs", "ranked right, %", "Kendall's tau", "mean regret, %")
    left_out = scores["leave_one_out"]
    shown = {
        "all accelerators in the fit": scores["choice"],
        "both accelerators left out": left_out["accelerator"]["choice"],
        "one of the two left out": left_out["accelerator"]["choice_beside_known"],
    }
    for how, choice in shown.items():
        for kind, found in choice.items():
            figures = map(_figure, (found["correct"], found["kendall"], found["mean_regret"]))
            yield _row(f"{kind}, {how}", found["pairs"], *figures)


ANY = "any"
VERDICTS = {True: "right", False: "**wrong**", None: "undecided"}


def _experiments(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head(
        "change", "of", "measured", "predicted", "may decide, measured", "predicted", "",
        "pairs", "decided", "right, %", "contradicted, %",
    )  # fmt: skip
    *each, every = scores["experiments"]
    for entry in each:
        quantity = ", ".join(filter(None, (entry["quantity"], entry["regime"])))
        admitted = ANY if entry["right"] is None else entry["dominant_measured"]
        yield _row(
            f"{entry['from']} → {entry['to']}", quantity,
            f"x{entry['measured_ratio']}", f"x{entry['predicted_ratio']}",
            admitted, entry["dominant_predicted"], VERDICTS[entry["right"]],
            entry["pairs"], entry["decided_pairs"],
            *map(_figure, (entry["right_percent"], entry["contradicted_percent"])),
        )  # fmt: skip
    told = f"{every['decided_experiments']} of {every['experiments']} decided"
    share = f"{_figure(every['right_experiments_percent'])} % right"
    yield _row(
        "all", told, "", "", "", "", share, every["pairs"], every["decided_pairs"],
        *map(_figure, (every["right_percent"], every["contradicted_percent"])),
    )  # fmt: skip


def _sources(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("source", "score", "predicted", "median", "p90")
    for source, names in scores["by_source"].items():
        for name, score in names.items():
            figures = map(_figure, (score["mdape"], score["p90"]))
            yield _row(source, name, score["predicted"], *figures)


def _own(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("measured on", "score", "rows", "median", "mean", "p90", "in 90 %")
    for where, names in scores["own"].items():
        for name, score in names.items():
            yield _row(where, name, *_errors(score))


def _units(scores: Mapping[str, Any]) -> Iterator[str]:
    """The worst five of each kind and score, so that no bad cell hides in a median."""
    yield from _head("left out", "score", "rows", "median", "in 90 %")
    for kind in UNITS:
        for name, units in scores["leave_one_out"][kind]["by_unit"].items():
            known = [(unit, each) for unit, each in units.items() if each["mdape"] is not None]
            for unit, each in sorted(known, key=lambda pair: -pair[1]["mdape"])[:5]:
                figures = map(_figure, (each["mdape"], each["coverage90"]))
                yield _row(f"{kind} {unit}", name, each["predicted"], *figures)


def _rival(scores: Mapping[str, Any]) -> Iterator[str]:
    yield from _head(
        "target, slice",
        "rows",
        "ours: median",
        "mean",
        "p90",
        "aiconfigurator: median",
        "mean",
        "p90",
    )
    for name, both in scores["leave_one_out"].get("against_aiconfigurator", {}).items():
        figures = (
            both[who][error] for who in ("ours", "rival") for error in ("mdape", "mape", "p90")
        )
        yield _row(name, both["rows"], *map(_figure, figures))


def _unpredicted(scores: Mapping[str, Any]) -> Iterator[str]:
    if not scores["unpredicted"]:
        yield "All eligible figures are predicted."
        return
    yield from _head("eligible figures without a prediction", "count")
    for reason, count in scores["unpredicted"].items():
        yield _row(reason, count)


if __name__ == "__main__":
    sys.exit(main())
