"""``python -m e2e.chart [--check]``."""

from __future__ import annotations

import argparse
import sys

from e2e.chart import generated
from e2e.controlplane.supervised import REPOSITORY


def main() -> int:
    """Write the generated files, or say which differ."""
    parser = argparse.ArgumentParser(prog="python -m e2e.chart", description=generated.__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a file differs")
    if not parser.parse_args().check:
        generated.write()
        return 0
    for path in (differing := generated.stale()):
        name = path.relative_to(REPOSITORY)
        print(f"{name} is not what its sources say: make generate", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
