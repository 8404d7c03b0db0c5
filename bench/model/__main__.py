"""``python -m bench.model --data DIR [--json] [--leave-one-out]``: how well the model predicts.

DIR holds some of the measured tables. The shipped constants are used and nothing is fitted on DIR;
rows that a shipped constant was fitted on are scored with constants fitted without their fold.
A table that cannot be read is named on the standard error and under ``unreadable``, and the others
are scored; without any the exit status is 2. One without a row is named on the standard error, and
adds to no score. ``--leave-one-out`` refits without each accelerator and each model of DIR in turn,
for the open data only; it takes long.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.model.document import document
from bench.model.leave_one_out import leave_one_out
from bench.model.printing import lines
from bench.model.targets import compared, outcomes, readable, stated, without_rows
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER
from poolwise.tables import load


@ends_on_bad_input
def main() -> None:
    """Score, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--leave-one-out", action="store_true", help="refit without each unit")
    asked = parser.parse_args()
    folder, tables = asked.data, load()
    targets, unreadable = readable(folder)
    said = (*unreadable.values(), *without_rows(folder, targets))
    sys.stderr.writelines(f"{sentence}\n" for sentence in said)
    several = list(compared(folder, tables, targets))
    every = list(outcomes(folder, tables, targets))
    found = document(stated(folder, targets), every, several, tables)
    found |= {"unreadable": unreadable} if unreadable else {}
    left_out = leave_one_out(folder, targets=targets) if asked.leave_one_out else {}
    found["leave_one_out"] = left_out
    print(json.dumps(found, indent=1) if asked.json else "\n".join(lines(found)))


if __name__ == "__main__":
    sys.exit(main())
