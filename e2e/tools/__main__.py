"""``python -m e2e.tools GROUP``: get the binaries of a group, building those that are missing."""

from __future__ import annotations

import sys

from e2e.errors import BuildFailed
from e2e.tools.build import binaries
from e2e.tools.catalog import CHART_TOOLS, KIND_TOOLS, TOOLS

GROUPS = {"controlplane": TOOLS, "chart": CHART_TOOLS, "kind": KIND_TOOLS}


def main(arguments: list[str]) -> None:
    """Print where each binary of the groups is."""
    for group in arguments:
        if group not in GROUPS:
            sys.exit(f"group {group}: unknown; it is one of {', '.join(GROUPS)}")
        for name, path in binaries(GROUPS[group]).items():
            print(f"{name}\t{path}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BuildFailed as error:
        sys.exit(str(error))
