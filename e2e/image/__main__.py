"""``python -m e2e.image``: build the operator's image."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from e2e.errors import HarnessError
from e2e.image import build, source


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m e2e.image", description="Build the image.")
    parser.add_argument("--base", default=build.default_base(), help="(default: %(default)s)")
    parser.add_argument("--tag", default="poolwise:dev", help="its name (default: %(default)s)")
    parser.add_argument("--platform", help="linux/amd64 or linux/arm64 (default: the engine's own)")
    parser.add_argument("--source", default="", metavar="URL", help="label: where its source is")
    return parser.parse_args(words)


def main() -> None:
    """Build, and say how large it is."""
    chosen = arguments()
    try:
        about = source.read(chosen.source)
        build.image(chosen.base, chosen.tag, about, chosen.platform)
    except HarnessError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
