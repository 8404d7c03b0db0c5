"""What was replayed before, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.files import BadInput, opened

Document = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parents[2] / "build" / "autoscaling.jsonl"
"""Of the page's replays."""


def read(path: Path) -> list[dict[str, Any]]:
    """What is there; nothing where there is no file.

    Raises :class:`BadInput` for what :func:`append` has not written, or not to its end.
    """
    if not path.exists():
        return []
    with opened(path) as file:
        return [_document(path, number, line) for number, line in enumerate(file, 1)]


def _document(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError as error:
        told = f"{path}, line {number}: is no JSON; without that line its replay is made again"
        raise BadInput(told) from error
    return found


def write(path: Path, documents: Iterable[Document]) -> None:
    """These and no others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(_line, documents)), encoding="utf-8")


def append(path: Path, document: Document) -> None:
    """One more line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(document))


def _line(document: Document) -> str:
    return json.dumps(document) + "\n"
