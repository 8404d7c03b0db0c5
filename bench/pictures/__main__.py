"""``python -m bench.pictures [--check]``: draw the pictures of docs/concepts.md, or compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType

from bench.pictures import advantages, ledgers, links, memory, prices, rooflines, style, tails

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
PICTURES: dict[str, ModuleType] = {
    "roofline": rooflines,
    "prices": prices,
    "ledgers": ledgers,
    "kv-cache": memory,
    "links": links,
    "tails": tails,
    "advantage": advantages,
}


def main() -> int:
    """Write the pictures; with ``--check`` 1 where one of them is not what the model draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--png", type=Path, metavar="DIR", help="write PNG there, to look at")
    asked = parser.parse_args()
    stale = [name for name in PICTURES if not _is_written(name, asked.check, asked.png)]
    for name in stale:
        print(f"{FOLDER / name}.svg is not what the model draws: python -m bench.pictures")
    return 1 if stale else 0


def svg(name: str) -> str:
    """One picture."""
    return style.as_svg(PICTURES[name].draw(), PICTURES[name].TITLE)


def _is_written(name: str, check: bool, png: Path | None) -> bool:
    path = FOLDER / f"{name}.svg"
    if png:
        PICTURES[name].draw().savefig(png / f"{name}.png", dpi=110)
    elif check:
        return path.exists() and path.read_text(encoding="utf-8") == svg(name)
    else:
        path.write_text(svg(name), encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
