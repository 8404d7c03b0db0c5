"""Fit the constants of serving: ``python -m bench.fit.serving --data DIR [--write]``.

With ``--write`` the shipped ``efficiencies_serving.toml`` is replaced: rows that are kept by hand
stay, fitted ones are new. Takes ten minutes on one core; the folds are most of it. Run it after
``bench.fit.collectives``, whose constants it builds on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.fit.arguments import arguments
from bench.fit.serving_constants import PHASE, fitted_rows, is_specified, not_fitted
from bench.fit.serving_folds import Scored, out_of_fold, ratio_rows
from bench.fit.serving_samples import REQUEST_TARGETS, STEP_TARGETS, measured
from bench.fit.shipping import ship
from bench.model.results import split_of
from poolwise.tables import load

HEADER = """Constants of serving: fractions of what a device reaches, times in seconds, bytes.
Rows with provenance "fitted" are written by `python -m bench.fit.serving --write`;
rows with provenance "specification" are kept by hand and stay."""


def main() -> None:
    """Fit, report out of fold, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    samples = [each for each in measured(asked.data, tables) if split_of(each.run.row) == "open"]
    scored = out_of_fold(samples, tables)
    _report(scored)
    if asked.write:
        fixed = not_fitted(tables)
        kept = filter(is_specified, fixed)
        ship(PHASE, HEADER, [*kept, *fitted_rows(samples, fixed), *ratio_rows(scored)])


def _report(scored: Sequence[Scored]) -> None:
    for target in (*STEP_TARGETS, *REQUEST_TARGETS):
        residuals = [each.residual for each in scored if each.sample.target is target]
        if residuals:
            wrong = 100 * np.abs(np.expm1(residuals))
            print(
                f"out of fold, {target.name}: {len(wrong)} rows, MdAPE {np.median(wrong):.1f} %,"
                f" p90 {np.quantile(wrong, 0.9):.1f} %"
            )


if __name__ == "__main__":
    main()
