"""``python -m bench.model --data DIR [--json] [--shipped]``: accuracy of every target.

Rows that name a ``split`` are scored with the shipped constants alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench.model import collectives, serving, training
from bench.model.results import Request, Result
from bench.tables import DEFAULT_FOLDER
from poolwise.tables import load

TARGETS: tuple[Callable[[Request], Iterator[Result]], ...] = (
    training.results,
    collectives.results,
    serving.results,
)


def main() -> None:
    """Score, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--shipped", action="store_true", help="leave out the refits")
    asked = parser.parse_args()
    request = Request(asked.data, load(), refit=not asked.shipped)
    found = (result for target in TARGETS for result in target(request))
    if asked.json:
        print(json.dumps([_as_dict(result) for result in found], indent=1))
    else:
        _print_table(found)


def _as_dict(result: Result) -> dict[str, object]:
    return {
        "target": result.target,
        "split": result.split,
        "protocol": result.protocol,
        **result.accuracy.as_dict(),
    }


def _print_table(results: Iterable[Result]) -> None:
    columns = ("rows", "MdAPE %", "MAPE %", "p90 %", "bias %", "Spearman", "in 90 %")
    print(f"{'target':<14}{'split':<8}{'protocol':<13}" + "".join(f"{c:>10}" for c in columns))
    for result in results:
        each = result.accuracy
        covered = "" if each.covered is None else f"{each.covered:.0f}"
        print(
            f"{result.target:<14}{result.split:<8}{result.protocol:<13}{each.rows:>10}"
            f"{each.mdape:>10.1f}{each.mape:>10.1f}{each.p90:>10.1f}{each.bias:>10.1f}"
            f"{each.spearman:>10.3f}{covered:>10}",
            flush=True,
        )


if __name__ == "__main__":
    main()
