"""What a Prometheus answers of pods, as the text that the pods themselves would have told.

Three things lie between the two. Prometheus puts labels of its own on each series; where several
jobs or several servers read one pod, each has a copy of every series with labels of its own, and
added up they would count the pod twice. Its native histograms are no lines of text. And what cannot
be read of one pod is no reason to doubt the others.
Format: https://prometheus.io/docs/prometheus/latest/querying/api/#native-histograms
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from poolwise.plan.signals.exposition import MOST_NATIVE_BUCKETS, Nonsense
from poolwise.plan.signals.histogram import FINEST_SCHEMA, SCHEMAS

UP = "up"
"""What Prometheus tells of each target itself: it bears the target's labels and no others."""
_NAME, _POD, _BOUND = "__name__", "pod", "le"
_PARTED = frozenset({_BOUND, "quantile"})
"""Labels of the parts of one histogram or summary."""
_TARGETS = frozenset(
    {_NAME, "namespace", _POD, "container", "endpoint", "instance", "job", "service"}
    | {"prometheus", "prometheus_replica", "node"}
)
"""Labels that Prometheus and its operator add, whatever ``up`` says."""
_EXPORTED = "exported_"
"""Before the name of an engine's label where the target has one of the same name."""
_PARTS = ("_bucket", "_sum", "_count")

_MOST_ZERO = 2.0**-14
"""Upper bound of an exponential histogram's bucket around zero; one with bounds of its own has its
first bucket there."""
_INDEX_SLACK = 1e-3
"""By which a bound may differ from a power of two's root, in buckets."""

Bucket = tuple[float, float, float]
"""Its bounds, and how many observations it holds."""
Copy = tuple[tuple[str, str], ...]
"""The labels of one target: by them the copies of a pod's series are told apart."""


@dataclass(frozen=True, slots=True)
class ScrapedText:
    """One pod, as Prometheus read it last."""

    text: str
    at_seconds: float
    """Unix time of the newest read."""


@dataclass(frozen=True, slots=True)
class _Point:
    """One series of an answer at one moment."""

    name: str
    labels: Mapping[str, str]
    series: Mapping[str, Any]


def texts(
    told: Iterable[object], ages: Iterable[object], own_labels: Collection[str]
) -> Mapping[str, ScrapedText | Nonsense]:
    """By pod, what it told; pods of which no time is known are left out.

    :param told: series as Prometheus answers them, and ``up`` of the same pods.
    :param ages: ``timestamp()`` of series that each target has as long as it lives.
    :param own_labels: labels that engines put on these themselves.
    """
    series, times = _by_pod(told), _by_pod(ages)
    found: dict[str, ScrapedText | Nonsense] = {}
    for pod, points in times.items():
        try:
            found[pod] = _text(series.get(pod, []), points, own_labels)
        except Nonsense as problem:
            found[pod] = problem
    return found


def _by_pod(answer: Iterable[object]) -> Mapping[str, list[_Point]]:
    """Series that name no pod belong to nobody."""
    found: defaultdict[str, list[_Point]] = defaultdict(list)
    for series in answer:
        labels = series.get("metric") if isinstance(series, Mapping) else None
        if not isinstance(series, Mapping) or not isinstance(labels, Mapping):
            continue
        if _POD in labels and all(isinstance(value, str) for value in labels.values()):
            found[labels[_POD]].append(_Point(labels.get(_NAME, ""), labels, series))
    return found


def _text(
    points: Sequence[_Point], times: Sequence[_Point], own_labels: Collection[str]
) -> ScrapedText:
    targets = [point for point in points if point.name == UP]
    added = _added(targets or times, own_labels)
    read_at: dict[Copy, float] = {}
    for point in times:
        copy, at_seconds = _copy(point, added), _number(point, "its time")
        if not math.isfinite(at_seconds):
            raise Nonsense(f"its time is {at_seconds:g}")
        read_at[copy] = max(at_seconds, read_at.get(copy, -math.inf))
    metrics: defaultdict[str, defaultdict[Copy, list[_Point]]]
    metrics = defaultdict(lambda: defaultdict(list))
    for point in points:
        if point.name != UP:
            metrics[_metric(point.name)][_copy(point, added)].append(point)
    lines: list[str] = []
    for copies in metrics.values():
        newest = max(copies, key=lambda copy: (read_at.get(copy, -math.inf), copy))
        lines += _lines(copies[newest], added)
    return ScrapedText("\n".join(lines) + "\n", max(read_at.values()))


def _added(points: Iterable[_Point], own_labels: Collection[str]) -> frozenset[str]:
    """Names of the labels that targets have, and engines have not.

    A target's labels are on every series of it: on ``up``, which has no others, and where nobody
    kept that, on the gauges that an engine always tells.
    """
    names = {name for point in points for name in point.labels}
    own = {name for name in names if name.removeprefix(_EXPORTED) in own_labels}
    return _TARGETS | (names - own - _PARTED)


def _copy(point: _Point, added: Collection[str]) -> Copy:
    return tuple(
        sorted(pair for pair in point.labels.items() if pair[0] in added and pair[0] != _NAME)
    )


def _metric(name: str) -> str:
    """A histogram's parts belong together: each metric is taken from one copy alone."""
    for part in _PARTS:
        name = name.removesuffix(part)
    return name


def _lines(points: Sequence[_Point], added: Collection[str]) -> Iterator[str]:
    """Native histograms alone where there are both: they are finer."""
    natives = [point for point in points if "histogram" in point.series]
    for point in natives or points:
        labels = {name: value for name, value in point.labels.items() if name not in added}
        if natives:
            yield from _native(point, labels)
        else:
            yield _line(point.name, labels, _number(point, point.name))


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    return f"{name}{_inside(labels)} {value!r}"


def _inside(labels: Mapping[str, str]) -> str:
    inside = (
        f"{label}={json.dumps(text, ensure_ascii=False)}" for label, text in sorted(labels.items())
    )
    return f"{{{','.join(inside)}}}"


def _native(point: _Point, labels: Mapping[str, str]) -> Iterator[str]:
    """Exponential as its engine would write it; with bounds of its own as the classic one it was.

    Prometheus answers both alike: the count, the sum, and of each bucket that holds anything its
    rule, its bounds and what it holds. The rule, of which bounds are inclusive, moves what lies on
    a bound by nothing that matters.
    """
    count, total, buckets = _histogram(point)
    last = -math.inf
    for lower, upper, held in buckets:
        if not (last <= lower < upper and upper >= 0.0 and held >= 0.0):
            raise Nonsense(f"{point.name} is a native histogram of impossible numbers")
        last = upper
    zeros = [each for each in buckets if each[0] <= 0.0]
    positive = [each for each in buckets if each[0] > 0.0]
    is_usual = all(upper <= _MOST_ZERO for _, upper, _ in zeros)
    schema = _schema(positive) if is_usual else None
    if schema is None:
        yield from _classic(point.name, labels, buckets, count, total)
    else:
        zero_count = sum(held for _, _, held in zeros)
        told = _exponential(schema, positive, zero_count, total)
        yield f"{point.name}{_inside(labels)} {told}"


def _classic(
    name: str, labels: Mapping[str, str], buckets: Sequence[Bucket], count: float, total: float
) -> Iterator[str]:
    """Cumulative, at the bounds of its buckets."""
    below, counts = 0.0, dict[float, float]()
    for lower, upper, held in buckets:
        if lower > 0.0:
            counts.setdefault(lower, below)
        counts[upper] = below = below + held
    counts[math.inf] = max(count, below)
    for bound, value in counts.items():
        yield _line(f"{name}_bucket", {**labels, _BOUND: repr(bound)}, value)
    yield _line(f"{name}_sum", labels, total)
    yield _line(f"{name}_count", labels, counts[math.inf])


def _schema(buckets: Sequence[Bucket]) -> int | None:
    """Of exponential buckets, which lie between powers of ``2 ** (2 ** -schema)``; None: they do
    not."""
    if not buckets or math.isinf(buckets[-1][1]):
        return None
    doublings = math.log2(buckets[0][1] / buckets[0][0])
    schema = round(-math.log2(doublings)) if doublings > 0.0 else None
    if schema is None or schema not in SCHEMAS:
        return None
    ends = [2.0**schema * math.log2(end) for lower, upper, _ in buckets for end in (lower, upper)]
    is_exponential = all(
        abs(end - round(end)) < _INDEX_SLACK and round(end) - round(start) == 1
        for start, end in zip(ends[::2], ends[1::2], strict=True)
    )
    return schema if is_exponential else None


def _exponential(schema: int, buckets: Sequence[Bucket], zero_count: float, total: float) -> str:
    """In OpenMetrics' form: a span for each bucket, and how counts differ from one to the next."""
    coarse = min(schema, FINEST_SCHEMA)
    merged: defaultdict[int, float] = defaultdict(float)
    for _, upper, held in buckets:
        index = round(2.0**schema * math.log2(upper))
        merged[math.ceil(index / 2 ** (schema - coarse))] += held
    indexes, counts = list(merged), list(merged.values())
    offsets = [indexes[0], *(after - before - 1 for before, after in pairwise(indexes))]
    deltas = [counts[0], *(after - before for before, after in pairwise(counts))]
    spans = ",".join(f"{offset}:1" for offset in offsets)
    return (
        f"{{count:{zero_count + sum(counts)!r},sum:{total!r},schema:{coarse},zero_threshold:0,"
        f"zero_count:{zero_count!r},positive_spans:[{spans}],"
        f"positive_deltas:[{','.join(repr(delta) for delta in deltas)}]}}"
    )


def _histogram(point: _Point) -> tuple[float, float, list[Bucket]]:
    try:
        told = point.series["histogram"][1]
        buckets = told.get("buckets", ())
        if len(buckets) > MOST_NATIVE_BUCKETS:
            raise Nonsense(f"{point.name} has more than {MOST_NATIVE_BUCKETS} buckets")
        ends = [(float(lower), float(upper), float(held)) for _, lower, upper, held in buckets]
        return float(told["count"]), float(told["sum"]), sorted(ends)
    except (LookupError, TypeError, AttributeError, OverflowError):
        problem: object = "parts are missing"
    except ValueError as error:
        if isinstance(error, Nonsense):
            raise
        problem = " ".join(str(error).split())[:80]
    raise Nonsense(f"{point.name} is a native histogram that cannot be read: {problem}")


def _number(point: _Point, what: str) -> float:
    try:
        return float(point.series["value"][1])
    except (LookupError, TypeError, ValueError, OverflowError):
        raise Nonsense(f"{what} is not a number") from None
