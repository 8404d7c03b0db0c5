"""Whether each status that is written tells something new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.handlers.histories.cluster import StatusWrite

MOST = 5
"""Of one object, in the five minutes that histories are watched at rest: words are told no more
often than each minute (docs/scaling.md)."""
_ASIDE = ("time", "memory", "reason")
"""Of ``scaling``: when it was told, what the next process goes on with, and a sentence of the same
figures."""


def repeated(writes: Iterable[StatusWrite]) -> Iterator[str]:
    """Of statuses that were written while nothing happened."""
    futile, moved = Counter[str](), Counter[str]()
    for write in writes:
        moved[write.name] += 1
        futile[write.name] += _meaning(write.before) == _meaning(write.after)
    yield from (f"{name}: {n} statuses were written" for name, n in moved.items() if n > MOST)
    yield from (
        f"{name}: {n} statuses told what was told before" for name, n in futile.items() if n > 1
    )


def _meaning(status: Mapping[str, Any]) -> Mapping[str, Any]:
    scaling = status.get("scaling") or {}
    told = {name: value for name, value in scaling.items() if name not in _ASIDE}
    return {**status, "scaling": told}
