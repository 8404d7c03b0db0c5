"""Of a server that tells each of its models apart, those series that tell of requests once.

Triton runs a request through several models, and counts it in each: tokenising before the model
that generates and after it (for each part of a stream again), an ensemble or a script that calls
them. Summed up, 100 requests are 400, and most of them have their first token at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from poolwise.plan.signals.exposition import Series


@dataclass(frozen=True, slots=True)
class OneModel:
    """How the model that counts is known.

    First the one that generates: all requests pass it once, by whatever front they come. Of
    several (a draft model beside the one it drafts for), and where none says so, the one that took
    the longest in all: what calls others takes as long as they do. Where no times are told, the one
    that counts the fewest: what is called by others is called once at least.
    """

    label: str
    generating: tuple[str, ...]
    """Metrics that only a model that generates has."""
    durations: tuple[str, ...]
    """Counters of time, of which the first that is told counts."""
    requests: str


def of_one(told: Mapping[str, list[Series]], one: OneModel) -> Mapping[str, list[Series]]:
    """Of each metric the series of one model, and those that name none.

    The first in order that tells a metric counts for it: not each has all of them.
    """
    order = _ordered(told, one)
    if len(order) < 2:
        return told
    return {name: _of_first(series, order, one.label) for name, series in told.items()}


def _of_first(series: list[Series], order: list[str], label: str) -> list[Series]:
    by_model: dict[str | None, list[Series]] = {}
    for each in series:
        by_model.setdefault(_model(each, label), []).append(each)
    first = next((model for model in order if model in by_model), None)
    return by_model.get(None, []) + (by_model[first] if first is not None else [])


def _ordered(told: Mapping[str, list[Series]], one: OneModel) -> list[str]:
    generating = {_model(each, one.label) for name in one.generating for each in told.get(name, ())}
    timed = next((told[name] for name in one.durations if name in told), [])
    seconds, requests = (
        _by_model(timed, one.label),
        _by_model(told.get(one.requests, ()), one.label),
    )
    models = {_model(each, one.label) for series in told.values() for each in series}
    return sorted(
        (model for model in models if model is not None),
        key=lambda model: (
            model not in generating,
            -seconds.get(model, 0.0),
            requests.get(model) or math.inf,
            model,
        ),
    )


def _by_model(series: Iterable[Series], label: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in series:
        model = _model(each, label)
        if model is not None and math.isfinite(each.value):
            found[model] = found.get(model, 0.0) + each.value
    return found


def _model(series: Series, label: str) -> str | None:
    return next((value for name, value in series.labels if name == label), None)
