"""A story is told anew when it says something else, and not when its figures move a little.

While a workload waits, each pass works out moments, prices and shares again, and they are never
quite the same: a status that followed them would be written for ever. So what was told stands as
long as the words are the same and no such figure has moved by more than a fifth. Counts (of free
accelerators, of workloads ahead) are told as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from poolwise.plan.reading import Told, moment_of, number, objects

TOLERANCE = 0.2
"""Relative; a fifth of the time until it starts, too."""
LEAST_PERCENT = 1.0
"""Shares that differ by no more are the same, however small they are."""
_SECONDS = {
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "years": 31_557_600.0,
}
_FIGURE = re.compile(
    r"(?P<money>[$€£]\d[\d,]*(?:\.\d+)?)"
    rf"|(?P<amount>\d+(?:\.\d+)?) (?P<unit>%|{'|'.join(_SECONDS)})(?![\w/])"
)
"""Money, a time, or a share."""


def steady(known: Told, fresh: dict[str, Any], now: datetime) -> dict[str, Any]:
    """``fresh``, with what was told of the same plan where that still holds."""
    names = ("generation", "placed", "pool", "reasonCode")
    if any(known.get(name) != fresh.get(name) for name in names):
        return fresh
    kept = {name: known[name] for name in _kept(known, fresh, now)}
    candidates = [_candidate(each, known) for each in fresh.get("candidates", ())]
    return {**fresh, **kept, **({"candidates": candidates} if candidates else {})}


def is_same(before: str, after: str) -> bool:
    """Whether two sentences differ at most by figures that are about the same."""
    if _FIGURE.sub("#", before) != _FIGURE.sub("#", after):
        return False
    pairs = zip(_figures(before), _figures(after), strict=True)
    return all(then[0] == now[0] and _is_near(*then, now[1]) for then, now in pairs)


def _kept(known: Told, fresh: Told, now: datetime) -> Iterator[str]:
    if _is_same_text(known.get("reason"), fresh.get("reason")):
        yield "reason"
    if _are_same_prices(objects(known, "prices"), objects(fresh, "prices")):
        yield "prices"
    then, later = (moment_of(each.get("expectedStartTime")) for each in (known, fresh))
    if then is not None and later is not None:
        margin = max(timedelta(minutes=1), TOLERANCE * abs(later - now))
        if abs(then - later) <= margin and then > now:
            yield "expectedStartTime"


def _candidate(fresh: Told, known: Told) -> Told:
    """With the sentence that was told of it."""
    same = (each for each in objects(known, "candidates") if each.get("pool") == fresh["pool"])
    before = next(same, {})
    if before.get("reasonCode") != fresh.get("reasonCode"):
        return fresh
    if not _is_same_text(before.get("reason"), fresh.get("reason")):
        return fresh
    return {**fresh, "reason": before["reason"]}


def _are_same_prices(then: Sequence[Told], now: Sequence[Told]) -> bool:
    if not then or [each.get("pool") for each in then] != [each.get("pool") for each in now]:
        return False
    names = ("perAcceleratorHour", "delaySecondsPerAcceleratorSecond")
    return all(
        _is_near("", number(old, name) or 0.0, number(new, name) or 0.0)
        for old, new in zip(then, now, strict=True)
        for name in names
    )


def _is_same_text(before: Any, after: Any) -> bool:
    return isinstance(before, str) and isinstance(after, str) and is_same(before, after)


def _figures(text: str) -> Iterator[tuple[str, float]]:
    """Kind and amount of each; times in seconds."""
    for each in _FIGURE.finditer(text):
        if each["money"]:
            yield each["money"][0], float(each["money"][1:].replace(",", ""))
        elif each["unit"] == "%":
            yield "%", float(each["amount"])
        else:
            yield "s", float(each["amount"]) * _SECONDS[each["unit"]]


def _is_near(kind: str, then: float, now: float) -> bool:
    least = LEAST_PERCENT if kind == "%" else 0.0
    return abs(then - now) <= max(TOLERANCE * max(abs(then), abs(now)), least)
