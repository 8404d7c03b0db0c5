"""``python -m observability [--check]``: write the dashboards' JSON, or say which differ."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from observability.fleet import FLEET
from observability.frame import Frame
from observability.operator import OPERATOR
from observability.workload import WORKLOAD

FRAMES = (FLEET, WORKLOAD, OPERATOR)
FOLDER = Path("charts/poolwise/files/dashboards")


def rendered(frame: Frame) -> str:
    """The JSON of a dashboard; the same bytes each time."""
    return json.dumps(frame.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with ``--check`` say which differ; 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m observability", description=__doc__)
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if any differs")
    options = parser.parse_args(arguments)
    wanted = {options.output / f"{frame.name}.json": rendered(frame) for frame in FRAMES}
    if options.check:
        return _compare(options.output, wanted)
    options.output.mkdir(parents=True, exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


def _compare(folder: Path, wanted: dict[Path, str]) -> int:
    there = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    different = sorted(path for path in there | wanted if there.get(path) != wanted.get(path))
    for path in different:
        print(f"{path} differs from observability/: run make generate")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
