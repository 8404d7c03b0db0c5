"""Whether a command prints what a page says, where the page may cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

CUT = "..."


def prints(expected: Sequence[str], printed: str) -> bool:
    """Whether the output is what the page shows: all of it, but for what ``...`` stands for.

    Columns may be narrower on the page, so runs of spaces count as one, and empty lines as none.

    >>> prints(["NAME  AGE", "...", "chat  ..."], "NAME   AGE\\nother  1s\\nchat   12s\\n")
    True
    >>> prints(["NAME  AGE"], "NAME  AGE\\nchat  12s\\n")
    False
    """
    lines = [squeezed for line in printed.splitlines() if (squeezed := _squeezed(line))]
    pattern = "".join(map(_pattern, expected))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _pattern(line: str) -> str:
    """Of one line of the page, with its end."""
    squeezed = _squeezed(line)
    if squeezed == CUT:
        return "(?:.*\n)*?"
    parts = [re.escape(part.strip()) for part in squeezed.split(CUT)]
    return " ?.* ?".join(parts) + "\n"


def _squeezed(line: str) -> str:
    return " ".join(line.split())
