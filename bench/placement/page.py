"""``python -m bench.placement.page --data DIR [--full]``: write docs/placement-replay.md."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.files import BadInput, check_folder
from bench.pictures import style
from bench.placement import plots, report, suite
from bench.placement.bars import bars
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = DOCS / "pictures" / "placement"
TEMPLATE = Path(__file__).with_name("page.md")


@ends_on_bad_input
def main() -> None:
    """Run the grid and write the page, which has all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--full", action="store_true", help="all loads, all seeds, larger fleets")
    asked = parser.parse_args()
    check_folder(asked.data)
    found = report.Found()
    for _, result in suite.run(asked.data, suite.tasks(asked.full)):
        if result.missing:
            raise BadInput(result.missing)
        found.add(result)
    write(found)


def write(found: report.Found) -> None:
    """The page and its pictures."""
    style.save(
        PICTURES / "completions.svg", plots.completions(found), "Mean time to completion by policy"
    )
    style.save(
        PICTURES / "choices.svg", plots.choices(found), "Regret of choices, and allocation of openb"
    )
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("<!-- BARS -->", "\n".join(_bars(found)))
    text = text.replace("<!-- RESULTS -->", re.sub("^## ", "### ", report.text(found), flags=re.M))
    (DOCS / "placement-replay.md").write_text(text, encoding="utf-8")


def _bars(found: report.Found) -> Iterator[str]:
    yield "| | reached | aim | |"
    yield "|---|---|---|---|"
    for bar in bars(found):
        verdict = "met" if bar.is_met else "**missed**"
        yield f"| {bar.name} | {bar.value:.4g} | {bar.aim:g} | {verdict} |"


if __name__ == "__main__":
    sys.exit(main())
