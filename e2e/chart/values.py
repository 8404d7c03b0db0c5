"""What ``values.yaml`` says: each value's path, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MARK = "# -- "


@dataclass(frozen=True)
class Value:
    """One documented value; what lies below it belongs to it."""

    path: tuple[str, ...]
    default: Any
    meaning: str

    @property
    def name(self) -> str:
        """As ``--set`` spells it."""
        return ".".join(self.path)


class Undocumented(Exception):
    """A value without a comment that tells what it means."""


def documented(values: Path) -> list[Value]:
    """All values of the file in its order; raises :class:`Undocumented`."""
    text = values.read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_walk(root, text.splitlines(), ()))


def _walk(node: yaml.MappingNode, lines: list[str], above: tuple[str, ...]) -> Iterator[Value]:
    for key, value in node.value:
        path = (*above, key.value)
        if meaning := _meaning(lines, key.start_mark.line):
            yield Value(path, _plain(value), meaning)
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _walk(value, lines, path)
        else:
            raise Undocumented(f"{'.'.join(path)} has no comment that begins with {MARK!r}")


def _meaning(lines: list[str], line: int) -> str:
    """The comment above a line, from its mark on; empty where there is none."""
    comment: list[str] = []
    for above in reversed(lines[:line]):
        text = above.strip()
        if text.startswith(MARK):
            return " ".join([text.removeprefix(MARK), *comment])
        if not text.startswith("# "):
            break
        comment.insert(0, text.removeprefix("# "))
    return ""


def _plain(node: yaml.Node) -> Any:
    return yaml.safe_load(yaml.serialize(node))
