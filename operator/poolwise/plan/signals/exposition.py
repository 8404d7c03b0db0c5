"""The text that Prometheus endpoints answer, bounded: series of some metrics and nothing else.

Hundreds of replicas answer the same series each few seconds, so what a series is called is parsed
once (by prometheus_client) and remembered (:mod:`.heads`); each later line costs only its number.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from prometheus_client.parser import text_string_to_metric_families as plain

from poolwise.plan.signals.heads import Head, Heads, Labels
from poolwise.plan.signals.histogram import SCHEMAS, native
from poolwise.plan.signals.sample import Histogram

MOST_LINES = 20_000
"""Of the metrics that are asked for; a vLLM engine tells 200."""
LINE_CHARACTERS = 4_096
MOST_NATIVE_BUCKETS = 1_000
FARTHEST_BUCKET = 2**19
"""From the one that ends at 1: doubles have exponents to 1,074, of 256 buckets each at most."""
MOST_NEW = 4_000
"""Series with a name that has to be read first, which takes 50 microseconds; an engine of 16 ranks
has 3,200, the first time."""
MOST_SKEW_SECONDS = 60.0
"""What a series' own time may differ from ours, where it bears one."""
_LINE = re.compile(r"([a-zA-Z_:][\w:]*(?:\{.*\})?)\s+(\S+)(?:\s+(-?\d{1,16}))?\s*$")
_NATIVE_FIELD = re.compile(r"\b(\w+):(\[[^\]]*\]|[^,\[\]{}]+)")
_SPAN = re.compile(r"(-?\d+):(\d+)")
_PARSER_ERRORS = (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError)
"""What prometheus_client raises for text that it cannot read."""


class Nonsense(ValueError):
    """What an endpoint told cannot be used; one sentence."""


@dataclass(frozen=True, slots=True)
class Series:
    """One number, or one native histogram."""

    name: str
    labels: Labels
    value: float
    histogram: Histogram | None = None


def series_of(text: str, names: Collection[str], now_seconds: float) -> Mapping[str, list[Series]]:
    """All series of the metrics ``names`` (histograms by their base name), by metric.

    A series that is told twice counts once.

    :raises Nonsense: for text that is no exposition, or more than anybody should tell.
    """
    if text.lstrip()[:1] in ("<", "{", "["):
        raise Nonsense(f"answers {text.strip()[:40]!r}..., which is not Prometheus' text format")
    found: dict[tuple[str, Labels], Series] = {}
    known = _HEADS.read
    for line in _lines(text, names):
        series = _series(line, now_seconds)
        found[series.name, series.labels] = series
        if _HEADS.read - known > MOST_NEW:
            raise Nonsense(f"serves more than {MOST_NEW} series that were never seen before")
    result: dict[str, list[Series]] = {}
    for series in found.values():
        result.setdefault(series.name, []).append(series)
    return result


def _lines(text: str, names: Collection[str]) -> Iterator[str]:
    pattern = _pattern(frozenset(names))
    for number, match in enumerate(pattern.finditer(text)):
        if number >= MOST_LINES:
            raise Nonsense(f"serves more than {MOST_LINES} series of the metrics that are read")
        if match.end() - match.start() > LINE_CHARACTERS:
            raise Nonsense(f"has a line of more than {LINE_CHARACTERS} characters")
        yield match.group().partition(" # {")[0]  # without an exemplar


@lru_cache(maxsize=64)
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    ordered = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf"^(?:{ordered})(?:_bucket|_sum|_count)?(?=[{{ \t])[^\n\r]*", re.MULTILINE)


def _series(line: str, now_seconds: float) -> Series:
    if "{schema:" in line or ",schema:" in line:
        return _native(line)
    match = _LINE.match(line)
    if match is None:
        raise Nonsense(f"has the line {line[:80]!r}, which is not a series")
    head, number, time_ms = match.groups()
    name, labels = _HEADS.of(head)
    if time_ms is not None and abs(int(time_ms) / 1000 - now_seconds) > MOST_SKEW_SECONDS:
        off_seconds = int(time_ms) / 1000 - now_seconds
        raise Nonsense(
            f"{name} has a timestamp that differs by {off_seconds:+.0f} s from our clock"
        )
    return Series(name, labels, _value(name, number))


def _value(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Nonsense(f"{name} is {text[:40]!r}, which is not a number") from None


def _head(head: str) -> Head:
    try:
        [family] = plain(head + " 0\n")
        [sample] = family.samples
    except _PARSER_ERRORS as error:
        raise Nonsense(f"has the series {head[:80]!r}, which cannot be read: {error}") from None
    return sample.name, tuple(sorted(sample.labels.items()))


_HEADS = Heads(_head)


def _native(line: str) -> Series:
    """A native histogram, as OpenMetrics writes it on one line.

    Read here, since prometheus_client 0.26 loses spans that begin below zero.
    """
    head, _, body = line.rpartition("{")
    name, labels = _HEADS.of(head.strip())
    told = dict(_NATIVE_FIELD.findall(body))
    try:
        schema, total = int(told["schema"]), float(told["sum"])
        spans = [(int(at), int(length)) for at, length in _SPAN.findall(told["positive_spans"])]
        deltas = [float(each) for each in told["positive_deltas"].strip("[]").split(",")]
        buckets = dict(_counts(spans, deltas))
        zero_count = float(told.get("zero_count", 0))
    except (KeyError, ValueError, StopIteration):
        raise Nonsense(f"{name} is a native histogram that cannot be read") from None
    numbers = (total, zero_count, *buckets.values())
    if schema not in SCHEMAS or not all(math.isfinite(each) and each >= 0 for each in numbers):
        raise Nonsense(f"{name} is a native histogram of impossible numbers")
    histogram = native(schema, zero_count, buckets, total)
    return Series(name, labels, histogram.count, histogram)


def _counts(spans: list[tuple[int, int]], deltas: list[float]) -> Iterator[tuple[int, float]]:
    """Counts by index: spans tell which indexes are there, deltas differ from the one before.

    :raises ValueError: where spans and deltas do not agree.
    """
    indexes: list[int] = []
    at = 0
    for offset, length in spans:
        if not 0 <= length <= MOST_NATIVE_BUCKETS or abs(at + offset) > FARTHEST_BUCKET:
            raise ValueError(offset, length)
        indexes += range(at + offset, at + offset + length)
        at += offset + length
    return zip(indexes, itertools.accumulate(deltas), strict=True)
