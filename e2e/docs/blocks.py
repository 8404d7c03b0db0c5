"""What a page tells its reader to do, in order: files to write and commands to run.

::

    ```yaml            a manifest; a first line ``# NAME.yaml`` says what the reader calls the file
    ```console         ``$ `` begins a command, what follows until the next one is what it prints
    ```sh              commands to paste, as one script

In what a command prints, ``...`` stands for anything that the page cuts: alone on a line for
lines, inside a line for a part of it. Blocks of other languages are only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# ([\w-]+\.yaml)\n")
HANDED_OVER = re.compile(r"^kubectl apply -f - <<'EOF'\n(.*?)^EOF$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command or script, and the lines that the page says it prints."""

    block: Block
    text: str
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A manifest that the reader writes down; without a name the page only shows it."""

    block: Block
    name: str | None
    text: str


Step = Command | File


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[1], found[2])


def steps(page: Path) -> Iterator[Step]:
    """What a page tells its reader to do, top to bottom."""
    for block in blocks(page):
        if block.language == "yaml":
            named = FILE_NAME.match(block.text)
            yield File(block, named[1] if named else None, block.text)
        elif block.language == "sh":
            yield Command(block, block.text)
        elif block.language == "console":
            yield from _prompted(block)


def manifests(page: Path) -> Iterator[tuple[Block, str]]:
    """All manifests of a page: whole blocks, and what scripts hand to ``kubectl``."""
    for block in blocks(page):
        if block.language == "yaml":
            yield block, block.text
        elif block.language == "sh":
            yield from ((block, text) for text in HANDED_OVER.findall(block.text))


def _prompted(block: Block) -> Iterator[Command]:
    command, printed = "", list[str]()
    for line in block.text.splitlines():
        if command.endswith("\\"):
            command += f"\n{line}"
        elif line.startswith(PROMPT):
            if command:
                yield Command(block, command, _trimmed(printed))
            command, printed = line.removeprefix(PROMPT), []
        else:
            printed.append(line)
    if command:
        yield Command(block, command, _trimmed(printed))


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    """Empty lines only keep commands apart."""
    return tuple(line for line in lines if line.strip())
