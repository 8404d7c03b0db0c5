"""The command line that the fitting programs share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.tables import DEFAULT_FOLDER


def arguments(what: str, figures: Sequence[str] = ()) -> argparse.Namespace:
    """``--data DIR`` and ``--write``; ``--figure`` where some of several can be asked for."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--write", action="store_true", help="replace the shipped constants")
    if figures:
        parser.add_argument(
            "--figure", nargs="+", choices=figures, default=figures, help="others stay as they are"
        )
    return parser.parse_args()
