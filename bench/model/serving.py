"""Serving against measured runs, each predicted by constants that never saw its group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bench.accuracy import Accuracy, accuracy
from bench.fit.serving_folds import Scored

REPORTED = ("tpot", "ttft", "throughput", "batch-1", "static-batch", "prefill")
SLICES: tuple[tuple[str, Callable[[Scored], str]], ...] = (
    ("engine", lambda each: each.sample.run.work.engine),
    ("gpu", lambda each: each.sample.run.machine.device.name),
    ("model", lambda each: each.sample.run.work.model.name),
)


def accuracies(scored: Iterable[Scored]) -> dict[str, Accuracy]:
    """By target, and by target and slice (``tpot gpu H100-SXM5-80GB``)."""
    found: dict[str, Accuracy] = {}
    every = list(scored)
    for target in REPORTED:
        of_target = [each for each in every if each.sample.target.name == target]
        if not of_target:
            continue
        found[target] = _accuracy(of_target)
        for name, label in SLICES:
            for value in sorted({label(each) for each in of_target}):
                part = [each for each in of_target if label(each) == value]
                found[f"{target} {name} {value}"] = _accuracy(part)
    return found


def report(scored: Iterable[Scored]) -> str:
    """One line for each target and slice."""
    head = f"{'':52} {'rows':>5} {'MdAPE':>6} {'MAPE':>6} {'p90':>6} {'bias':>6}"
    lines = [
        f"{name:52} {each.rows:5} {each.mdape:6.1f} {each.mape:6.1f} {each.p90:6.1f}"
        f" {each.bias:+6.1f}"
        for name, each in accuracies(scored).items()
    ]
    return "\n".join([head, *lines])


def _accuracy(scored: Sequence[Scored]) -> Accuracy:
    predicted = np.array([each.predicted for each in scored])
    return accuracy(predicted, np.array([each.sample.run.measured for each in scored]))
