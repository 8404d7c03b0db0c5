"""``python -m e2e.images``: build the image of what the suite on kind runs in pods."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.errors import HarnessError
from e2e.image.engine import docker
from e2e.progress import say

FOLDER = Path(__file__).resolve().parent


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m e2e.images", description=__doc__)
    parser.add_argument("--base", default="poolwise:dev", help="(default: %(default)s)")
    parser.add_argument("--tag", default="poolwise-e2e:dev", help="(default: %(default)s)")
    return parser.parse_args(words)


def build(base: str, tag: str) -> None:
    """Build ``tag`` on ``base``; raises :class:`EngineFailed`."""
    say(f"==> image {tag} on {base}")
    docker("build", "--quiet", "--build-arg", f"BASE={base}", "--tag", tag, FOLDER)


def main() -> None:
    """Build it."""
    chosen = arguments()
    try:
        build(chosen.base, chosen.tag)
    except HarnessError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
