"""One thing wrong with one field, in the words of ``k8s.io/apimachinery`` (``field.Error``)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """What is wrong; the value is how the sentence begins."""

    INVALID = "Invalid value"
    TYPE_INVALID = "Invalid value "
    REQUIRED = "Required value"
    UNSUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"


_WITHOUT_VALUE = frozenset({Kind.REQUIRED, Kind.TOO_LONG})
_BLOCKING = frozenset(
    {Kind.TYPE_INVALID, Kind.REQUIRED, Kind.UNSUPPORTED, Kind.TOO_LONG, Kind.TOO_MANY}
)
OMITTED = object()
"""Stands for a value that the sentence does not show."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field with its value and what is allowed."""

    field: str
    kind: Kind
    detail: str = ""
    value: Any = OMITTED

    @property
    def is_blocking(self) -> bool:
        """Whether the server skips the rules across fields because of it."""
        return self.kind in _BLOCKING

    def __str__(self) -> str:
        parts = [self.field, self.kind.value.strip()]
        if self.kind not in _WITHOUT_VALUE and self.value is not OMITTED:
            parts.append(shown(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)


def shown(value: Any) -> str:
    """A value as Go prints it: text quoted, the rest as JSON."""
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def quoted(text: str) -> str:
    """Go's ``strconv.Quote``: what cannot be printed is escaped, so nothing reaches a terminal."""
    return '"' + "".join(map(_escaped, text)) + '"'


_ESCAPES = {
    **{"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"},
    **{'"': '\\"', "\\": "\\\\"},
}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
