"""``python -m bench.placement --data DIR [--json] [--full]``: replay queues of work, and compare.

Files are found by the beginning of their names anywhere below DIR; a part whose file is missing is
left out and named on standard error, and so is one whose file is torn or holds something else: then
the exit status is 2, whatever the other parts came to.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.files import check_folder
from bench.placement import report, suite
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

MISSING, UNUSABLE = 1, 2
"""Exit statuses."""


@ends_on_bad_input
def main() -> int:
    """Run the grid; 1 where every file was missing, 2 where one could not be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--full", action="store_true", help="all loads, all seeds, larger fleets")
    asked = parser.parse_args()
    check_folder(asked.data)
    found = report.Found()
    wanted = suite.tasks(asked.full)
    for number, (task, result) in enumerate(suite.run(asked.data, wanted), 1):
        found.add(result)
        if sys.stderr.isatty():
            print(
                f"\r{number} of {len(wanted)}: {task.kind} {task.policy}", end="", file=sys.stderr
            )
    for missing in sorted(found.missing | found.unusable):
        print(missing, file=sys.stderr)
    print(json.dumps(report.document(found)) if asked.json else report.text(found))
    if found.unusable:
        return UNUSABLE
    return 0 if found.cells or found.regrets else MISSING


if __name__ == "__main__":
    sys.exit(main())
