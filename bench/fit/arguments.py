"""The command line that the fitting programs share."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.tables import DEFAULT_FOLDER


def arguments(what: str) -> argparse.Namespace:
    """``--data DIR`` and ``--write``."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--write", action="store_true", help="replace the shipped constants")
    return parser.parse_args()
