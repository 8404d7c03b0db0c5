"""From what an engine's ``/metrics`` tells to a :class:`Sample`, or to why it cannot be used.

A replica may tell as several engines do, one inside the other: what the inner one tells of itself
counts before what its server counts around it. Series of one metric are added up, since engines
that share a replica tell one each, but for servers that tell each of their models apart and count a
request in all that it passes (Triton): there one model counts (:mod:`.models`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from poolwise.plan.signals.exposition import Nonsense, Series, series_of
from poolwise.plan.signals.histogram import pooled
from poolwise.plan.signals.models import of_one
from poolwise.plan.signals.names import ADAPTERS, Adapter, Fold, Source
from poolwise.plan.signals.plausible import implausible
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import HISTOGRAMS

FULL = 1.05
"""Engines count a block in use twice for a moment; above this a share is no share."""
GAUGES = ("running", "waiting", "kv_cache_usage")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a replica's metrics cannot be used: one sentence, without the replica's name."""

    reason: str
    asks_for_login: bool = False
    """Whether it was the replica itself that let nobody read it who does not log in."""


def read(text: str, engine: str, replica: str, at_seconds: float) -> Sample | Fault:
    """What one replica told.

    :param engine: ``spec.engine.type``.
    :param at_seconds: Unix time of the look, by our clock.
    """
    found = sample(text, ADAPTERS[engine], replica, at_seconds)
    if found is None:
        example = _example(engine)
        return Fault(f"serves none of the metrics of engine {engine}, such as {example}")
    return found


def sample(
    text: str, adapters: Sequence[Adapter], replica: str, at_seconds: float
) -> Sample | Fault | None:
    """What was told under the names that some adapters know; None: nothing."""
    try:
        found = _read(text, adapters, replica, at_seconds)
    except Nonsense as error:
        return Fault(str(error))
    # Of all series together: each may be finite, and their sum beyond all bounds.
    problem = implausible(found) if found is not None else None
    return found if problem is None else Fault(problem)


def series_names(adapters: Iterable[Adapter]) -> frozenset[str]:
    """Every metric that may be told, histograms by their base name."""
    return frozenset[str]().union(*map(_names, adapters))


def loads(engine: str) -> tuple[str, ...]:
    """Gauges of running requests: what an engine tells as long as it lives."""
    return tuple(
        prefix + source.name
        for adapter in ADAPTERS[engine]
        for prefix in adapter.prefixes
        for source in adapter.fields["running"]
    )


def own_labels(engine: str) -> frozenset[str]:
    """Labels that an engine itself puts on its :func:`loads`."""
    return frozenset[str]().union(*(adapter.labels for adapter in ADAPTERS[engine]))


def _read(text: str, adapters: Sequence[Adapter], replica: str, at_seconds: float) -> Sample | None:
    found: dict[str, Any] = {}
    for adapter in adapters:
        found = {**_told(text, adapter, at_seconds), **found}
    return Sample(replica, at_seconds, **found) if found else None


def _told(text: str, adapter: Adapter, at_seconds: float) -> Mapping[str, Any]:
    """By field, under the first prefix that is told."""
    told = series_of(text, _names(adapter), at_seconds)
    if adapter.one_model is not None:
        told = of_one(told, adapter.one_model)
    for prefix in adapter.prefixes if told else ():
        values = {
            field: value
            for field, sources in adapter.fields.items()
            if (value := _first(told, prefix, sources, field)) is not None
        }
        if values:
            return values
    return {}


@lru_cache(maxsize=32)
def _names_of(prefixes: tuple[str, ...], names: frozenset[str]) -> frozenset[str]:
    return frozenset(prefix + name for prefix in prefixes for name in names)


def _names(adapter: Adapter) -> frozenset[str]:
    names = {source.name for each in adapter.fields.values() for source in each}
    if adapter.one_model is not None:
        names.update(adapter.one_model.durations)
    return _names_of(adapter.prefixes, frozenset(names))


def _example(engine: str) -> str:
    adapter = ADAPTERS[engine][0]
    return adapter.prefixes[0] + adapter.fields["running"][0].name


def _first(
    told: Mapping[str, list[Series]], prefix: str, sources: Iterable[Source], field: str
) -> Any:
    """The newest name that is told; None where none is."""
    for source in sources:
        name = prefix + source.name
        value: float | Histogram | None
        if field in HISTOGRAMS:
            value = _histogram(told, name, source)
        else:
            value = _number(told.get(name, ()), name, source, field)
        if value is not None:
            return value
    return None


def _number(series: Iterable[Series], name: str, source: Source, field: str) -> float | None:
    values = [each.value for each in series if _has(each, source.labels)]
    if field in GAUGES:
        values = [value for value in values if not math.isnan(value)]  # nothing to tell now
    if not values:
        return None
    for value in values:
        if not math.isfinite(value) or value < 0:
            raise Nonsense(f"{name} is {value:g}, which is not a possible count or share")
    result = source.unit * (max(values) if source.fold is Fold.MOST else sum(values))
    if field == "kv_cache_usage":
        if result > FULL:
            raise Nonsense(f"{name} is {result:g}, a share must lie between 0 and 1")
        return min(result, 1.0)
    return result


def _histogram(told: Mapping[str, list[Series]], name: str, source: Source) -> Histogram | None:
    """All series of a histogram together; a native one where it is told, since it is finer."""
    natives = [
        each.histogram
        for each in told.get(name, ())
        if each.histogram is not None and _has(each, source.labels)
    ]
    if natives:
        return pooled(natives)
    buckets: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    for each in told.get(name + "_bucket", ()):
        if not _has(each, source.labels):
            continue
        rest = tuple(pair for pair in each.labels if pair[0] != "le")
        bound = _bound(each, name) * source.unit
        buckets.setdefault(rest, {})[bound] = each.value
    if not buckets:
        return None
    totals = {each.labels: each.value * source.unit for each in told.get(name + "_sum", ())}
    return pooled([_checked(name, found, totals.get(labels)) for labels, found in buckets.items()])


def _bound(series: Series, name: str) -> float:
    text = dict(series.labels).get("le", "")
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if math.isnan(bound):
        raise Nonsense(f"{name} has a bucket up to {text[:20]!r}, which is not a number")
    return bound


def _checked(name: str, buckets: Mapping[float, float], total: float | None) -> Histogram:
    bounds = sorted(buckets)
    counts = tuple(buckets[bound] for bound in bounds)
    if bounds[-1] != math.inf:
        raise Nonsense(f"{name} has no bucket up to +Inf")
    if not all(math.isfinite(count) and count >= 0 for count in counts):
        raise Nonsense(f"{name} has a bucket that holds {min(counts):g} observations")
    if any(later < earlier for earlier, later in itertools.pairwise(counts)):
        raise Nonsense(f"{name} has a bucket that holds fewer observations than the one below it")
    if total is not None and not (math.isfinite(total) and total >= 0):
        raise Nonsense(f"{name} has the sum {total:g}")
    return Histogram(tuple(bounds), counts, total)


def _has(series: Series, labels: Mapping[str, str]) -> bool:
    own = dict(series.labels)
    return all(own.get(name) == value for name, value in labels.items())


assert {name for each in ADAPTERS.values() for one in each for name in one.fields} <= {
    field.name for field in fields(Sample)
}
