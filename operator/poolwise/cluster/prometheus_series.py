"""What Prometheus' query API answers of one pod, as the text that the pod itself would have told.

A pod may be scraped twice, by two jobs or by two Prometheus servers behind one query: one of these
scrapes is taken, the newest, and the labels by which servers tell themselves apart are left out.
Format: https://prometheus.io/docs/prometheus/latest/querying/api/#native-histograms
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

Series = Mapping[str, Any]
Scrape = tuple[str, str]
"""Job and instance, which every scrape has; empty where relabelling took them."""
Bucket = tuple[float, float, float]
"""Its bounds, and how many observations it holds."""

TARGET_LABELS = frozenset(
    {
        *("__name__", "namespace", "pod", "container", "endpoint", "instance", "job", "service"),
        *("prometheus", "node"),
    }
)
"""What a Prometheus adds to what a pod tells."""
SERVER_LABELS = frozenset(
    {
        *("replica", "__replica__", "prometheus_replica", "thanos_replica", "receive_replica"),
        *("rule_replica", "monitor", "cluster"),
    }
)
"""By which servers that read the same tell themselves apart."""
NO_LABELS = TARGET_LABELS | SERVER_LABELS
MOST_ZERO = 2.0**-14
"""Upper bound of an exponential histogram's bucket around zero; one with bounds of its own has its
first bucket there."""
_FINEST_SCHEMA = 8
_INDEX_SLACK = 1e-3
"""By which a bound may differ from a power of two's root, in buckets."""


@dataclass(frozen=True)
class Pod:
    """One scrape of one pod."""

    read_at_seconds: float
    """Unix time."""
    series: Sequence[Series]


def pods_of(told: Iterable[Series], ages: Iterable[Series]) -> dict[str, Pod]:
    """By name, the newest scrape of each; of equally new ones that which tells most.

    :raises ValueError: for a series that is none.
    """
    series: defaultdict[str, defaultdict[Scrape, list[Series]]]
    series = defaultdict(lambda: defaultdict(list))
    for each in told:
        pod, scrape = _origin(each)
        series[pod][scrape].append(each)
    read_at: defaultdict[str, dict[Scrape, float]] = defaultdict(dict)
    for each in ages:
        pod, scrape = _origin(each)
        at_seconds = _number(each["value"][1])
        read_at[pod][scrape] = max(at_seconds, read_at[pod].get(scrape, at_seconds))
    found = {}
    for pod, scrapes in read_at.items():
        newest = max(scrapes, key=lambda each: (scrapes[each], len(series[pod][each]), each))
        found[pod] = Pod(scrapes[newest], series[pod][newest])
    return found


def _origin(series: Series) -> tuple[str, Scrape]:
    labels = series.get("metric") if isinstance(series, Mapping) else None
    if not isinstance(labels, Mapping):
        raise ValueError(f"it answers the series {str(series)[:80]!r}, which is none")
    return str(labels.get("pod", "")), (str(labels.get("job", "")), str(labels.get("instance", "")))


def text_of(pod: Pod) -> str:
    """The whole scrape; of a metric that is told both ways, the native histogram.

    :raises ValueError: for a series that is none.
    """
    natives = {each["metric"].get("__name__") for each in pod.series if "histogram" in each}
    lines: list[str] = []
    for each in pod.series:
        base = str(each["metric"].get("__name__", "")).removesuffix("_bucket").removesuffix("_sum")
        if "histogram" in each:
            lines += _histogram(each)
        elif base not in natives:
            lines.append(f"{_head(each)} {each['value'][1]}")
    return "\n".join(lines) + "\n"


def _head(series: Series, suffix: str = "", **more: str) -> str:
    own = {name: value for name, value in series["metric"].items() if name not in NO_LABELS}
    labels = ",".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted({**own, **more}.items())
    )
    return f"{series['metric']['__name__']}{suffix}{{{labels}}}"


def _histogram(series: Series) -> Iterator[str]:
    """Exponential as its engine wrote it; with bounds of its own as the classic one it was."""
    told = series["histogram"][1]
    total = _number(told["sum"])
    buckets = [
        (_number(low), _number(high), _number(count))
        for _, low, high, count in told.get("buckets", ())
    ]
    positive = sorted(each for each in buckets if each[0] > 0.0)
    zeros = [each for each in buckets if each[0] <= 0.0]
    is_usual = all(high <= MOST_ZERO for _, high, _ in zeros)
    schema = _schema(positive) if is_usual else None
    if schema is None:
        yield from _classic(series, sorted(buckets), total)
    else:
        zero_count = sum(count for _, _, count in zeros)
        yield _exponential(series, schema, positive, zero_count, total)


def _schema(buckets: Sequence[Bucket]) -> int | None:
    """Of exponential buckets, whose bounds are powers of ``2 ** (2 ** -schema)``; None: they are
    not."""
    if not buckets:
        return None
    low, high, _ = buckets[0]
    if not (0.0 < low < high < math.inf):
        return None
    schema = round(-math.log2(math.log2(high / low)))
    indexes = [math.log2(high) * 2.0**schema for _, high, _ in buckets if high < math.inf]
    widths = [math.log2(high / low) * 2.0**schema for low, high, _ in buckets if high < math.inf]
    is_exponential = (
        schema <= _FINEST_SCHEMA
        and len(indexes) == len(buckets)
        and all(abs(each - round(each)) < _INDEX_SLACK for each in indexes)
        and all(abs(each - 1.0) < _INDEX_SLACK for each in widths)
    )
    return schema if is_exponential else None


def _exponential(
    series: Series, schema: int, buckets: Sequence[Bucket], zero_count: float, total: float
) -> str:
    """In OpenMetrics' form: a span for each bucket, and how counts differ from one to the next."""
    indexes = [round(math.log2(high) * 2.0**schema) for _, high, _ in buckets]
    counts = [count for _, _, count in buckets]
    offsets = [indexes[0], *(after - before - 1 for before, after in pairwise(indexes))]
    deltas = [counts[0], *(after - before for before, after in pairwise(counts))]
    spans = ",".join(f"{offset}:1" for offset in offsets)
    steps = ",".join(f"{delta!r}" for delta in deltas)
    return (
        f"{_head(series)} {{count:{zero_count + sum(counts)!r},sum:{total!r},schema:{schema},"
        f"zero_threshold:0,zero_count:{zero_count!r},"
        f"positive_spans:[{spans}],positive_deltas:[{steps}]}}"
    )


def _classic(series: Series, buckets: Sequence[Bucket], total: float) -> Iterator[str]:
    """Cumulative, at all bounds that are told: buckets that hold nothing are not."""
    counts = accumulate(count for _, _, count in buckets)
    below = {high: count for (_, high, _), count in zip(buckets, counts, strict=True)}
    before = 0.0
    at: dict[float, float] = {}
    for low, high, _ in buckets:
        if low > 0.0:
            at.setdefault(low, before)
        at[high] = before = below[high]
    at[math.inf] = before
    for bound, count in sorted(at.items()):
        text = "+Inf" if bound == math.inf else f"{bound!r}"
        yield f"{_head(series, '_bucket', le=text)} {count!r}"
    yield f"{_head(series, '_sum')} {total!r}"


def _number(text: object) -> float:
    """Prometheus writes numbers as texts."""
    try:
        return float(str(text))
    except ValueError:
        raise ValueError(f"it answers {str(text)[:40]!r}, which is no number") from None
