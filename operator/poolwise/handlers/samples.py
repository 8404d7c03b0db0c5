"""Samples of metrics, read off statuses."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.cluster.metric_table import Definition
from poolwise.plan.reading import Told

Sample = tuple[Definition, tuple[str, ...], float]
"""A metric, the values of its labels, and its own."""


def present(metric: Definition, labels: tuple[str, ...], value: float | None) -> Iterator[Sample]:
    """The sample, where there is a value."""
    if value is not None:
        yield metric, labels, value


def conditions(status: Told) -> dict[str, float]:
    """1 for each condition that is True, 0 for the others, by type."""
    told = status.get("conditions") or ()
    return {str(each["type"]): float(each["status"] == "True") for each in told}
