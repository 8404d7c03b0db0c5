"""Pages of docs/ that are made from code: written, or compared with what is there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Page:
    """One page, and the command that makes it."""

    module: str
    """What ``python -m`` runs."""
    path: Path
    text: str
    source: str
    """What it is made from, for the sentence that it differs."""

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Write the page, or with ``--check`` say that it differs; 1 if it does."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}")
        parser.add_argument("--output", type=Path, default=self.path, help="the file")
        parser.add_argument("--check", action="store_true", help="write nothing; 1 if it differs")
        options = parser.parse_args(arguments)
        if not options.check:
            options.output.write_text(self.text, encoding="utf-8")
            return 0
        if options.output.is_file() and options.output.read_text(encoding="utf-8") == self.text:
            return 0
        print(f"{options.output} differs from the {self.source}: run make generate")
        return 1
