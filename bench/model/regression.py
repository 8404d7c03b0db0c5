"""``python -m bench.model.regression``: fail where a fixed sample is predicted worse than before.

The sample (``bench/sample``) is a few dozen rows of each score under the Apache licence, drawn once
by a hash of their identity. Its rows are part of the fit, so each is predicted by the constants of
its fold. ``--write`` accepts the errors as they are, and with ``--data DIR`` draws the sample anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

from bench import tables as measured
from bench.model.outcome import Outcome
from bench.model.scores import by_name
from bench.model.targets import TARGETS, outcomes
from bench.tables import Row
from poolwise.tables import load

SAMPLE = Path(__file__).resolve().parents[1] / "sample"
EXPECTED = SAMPLE / "expected.json"
ROWS = 40
"""Of each score."""
WORSE, MORE_PERCENT = 1.1, 0.5
"""A median error may grow by a tenth and half a point: rounding, not another law."""


def main() -> int:
    """1 where a score got worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="accept today's errors")
    parser.add_argument("--data", type=Path, help="with --write: draw the sample from these tables")
    asked = parser.parse_args()
    if asked.write and asked.data:
        _draw(asked.data)
    found = _errors(outcomes(SAMPLE, load()))
    if asked.write:
        EXPECTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    worse = regressions(found, json.loads(EXPECTED.read_text(encoding="utf-8")))
    print("\n".join(worse) or f"accuracy on {sum(1 for _ in found)} scores as before")
    return 1 if worse else 0


def regressions(found: dict[str, float], expected: dict[str, float]) -> list[str]:
    """One sentence for each score that got worse, or is no longer predicted."""
    sentences = []
    for name, before in expected.items():
        now = found.get(name)
        if now is None:
            sentences.append(f"{name}: nothing of the sample is predicted any more")
        elif now > before * WORSE + MORE_PERCENT:
            sentences.append(
                f"{name}: median error {now:.1f} % on bench/sample, {before:.1f} % is expected; "
                "accept with python -m bench.model.regression --write if that is meant"
            )
    return sentences


def _errors(found: Iterable[Outcome]) -> dict[str, float]:
    scores = by_name(found)
    return {name: score["mdape"] for name, score in scores.items() if score["mdape"] is not None}


def _draw(folder: Path) -> None:
    """Rows with the least hash of each score, as tables of the same columns."""
    wanted: dict[str, list[str]] = {}
    for each in outcomes(folder, load()):
        if each.is_eligible and _may_be_shipped(each.row):
            wanted.setdefault(each.score, []).append(each.row["row_id"])
    chosen = {row_id for ids in wanted.values() for row_id in sorted(ids, key=_hash)[:ROWS]}
    for target in TARGETS:
        rows = [row for row in measured.read(folder, target.table) if row["row_id"] in chosen]
        measured.write(SAMPLE, target.table, rows)


def _may_be_shipped(row: Row) -> bool:
    return row["licence"].startswith("Apache-2.0") and "MLPerf" not in row["licence"]


def _hash(row_id: str) -> int:
    return zlib.crc32(row_id.encode())


if __name__ == "__main__":
    sys.exit(main())
