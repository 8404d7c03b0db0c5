"""Fit the constants of serving: ``python -m bench.fit.serving --data DIR [--write]``.

With ``--write`` the shipped ``efficiencies_serving.toml`` is replaced: its specified rows stay, its
fitted ones are new. Takes about ten minutes on one core; most of it are the folds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.fit.serving_constants import FILE, PHASE, fitted_rows, specified
from bench.fit.serving_folds import out_of_fold, ratio_rows
from bench.fit.serving_samples import REQUEST_TARGETS, STEP_TARGETS, samples
from bench.fit.shipping import ship
from bench.model.serving import report
from bench.tables import DEFAULT_FOLDER, read
from poolwise import tables
from poolwise.model.efficiency import Calibration

HEADER = """Constants of serving: fractions of a device's reachable rate, times in seconds, bytes.
Rows with provenance "fitted" are written by `python -m bench.fit.serving --write`;
rows with provenance "specification" are kept by hand and stay."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, score out of fold, print, and write if asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit.serving")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--write", action="store_true", help="replace the shipped file")
    chosen = parser.parse_args(arguments)
    shipped = tables.load()
    fixed = specified(shipped.efficiencies)
    rows = read(chosen.data, "serve_measured")
    known = Calibration(fixed)
    step = samples(rows, shipped, STEP_TARGETS, known)
    request = samples(rows, shipped, REQUEST_TARGETS, known)
    _say(f"fitting on {len(step)} steps and {len(request)} first tokens")
    found = fitted_rows(step, request, fixed)
    scored = out_of_fold(step, request, fixed, _say)
    print(report(scored))
    if chosen.write:
        kept = [row for row in fixed if row.phase == PHASE]
        ship(FILE, HEADER, [*kept, *found, *ratio_rows(scored)])
        _say(f"wrote {FILE}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
