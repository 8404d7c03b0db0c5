"""``python -m bench.model --data DIR [--json] [--leave-one-out]``: how well the model predicts.

DIR holds some of the measured tables. The shipped constants are used and nothing is fitted on DIR;
rows that a shipped constant was fitted on are scored with constants fitted without their fold.
``--leave-one-out`` refits without each accelerator and each model of DIR in turn, for the open
data only; it takes long.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.model.document import document
from bench.model.leave_one_out import leave_one_out
from bench.model.printing import lines
from bench.model.targets import compared, outcomes
from bench.tables import DEFAULT_FOLDER
from poolwise.tables import load


def main() -> None:
    """Score, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--leave-one-out", action="store_true", help="refit without each unit")
    asked = parser.parse_args()
    tables = load()
    several = list(compared(asked.data, tables))
    found = document(list(outcomes(asked.data, tables)), several, tables)
    found["leave_one_out"] = leave_one_out(asked.data) if asked.leave_one_out else {}
    print(json.dumps(found, indent=1) if asked.json else "\n".join(lines(found)))


if __name__ == "__main__":
    main()
