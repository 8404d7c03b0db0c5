"""Progress as a status tells it (``status.observed.training``), and back.

The status is the only memory: corrections, remaining times and the cost of a stop are worked out
from it, by whichever process comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from poolwise.model.correction import WINDOW
from poolwise.model.prediction import CHECKPOINT
from poolwise.plan.conditions import timestamp
from poolwise.plan.learning import Rated
from poolwise.plan.observed import Object
from poolwise.plan.reading import Told, mapping, moment_of, number
from poolwise.plan.steps.progress import Progress
from poolwise.plan.wording import significant

FIELD = "training"


@dataclass(frozen=True, slots=True)
class Basis:
    """What the measurements of a run are of."""

    model: str
    """Its name, or that of its shape."""
    alike: str
    """Same for runs of the same work in the same layout."""
    pool: str
    steps: float | None
    """Of the whole run."""
    model_step_seconds: float | None
    """What the model said of a step, without checkpoints and before any correction."""
    rated: Rated | None = None
    """Of models whose FLOPs nobody told: their runs correct no model, and are rates."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What a status tells of a run."""

    basis: Basis
    progress: Progress
    samples: int
    """Windows that its step's time is the median of."""
    time: datetime
    """Of the look that this was told after."""

    @property
    def ratio(self) -> float | None:
        """Measured over modelled time of a step."""
        measured, modelled = self.progress.step_seconds, self.basis.model_step_seconds
        return measured / modelled if measured and modelled else None

    @property
    def remaining_seconds(self) -> float | None:
        """From then on, at its pace; None where that or the end is not known."""
        pace, wanted = self.progress.pace_seconds, self.basis.steps
        if not pace or wanted is None:
            return None
        return max(wanted - self.progress.steps, 0.0) * pace

    def holds_on(self, pool: object, started: datetime) -> bool:
        """Whether it tells the pace of what has run there since then."""
        is_here = self.basis.pool == pool and self.time >= started
        return is_here and self.remaining_seconds is not None

    @property
    def checkpoint(self) -> datetime | None:
        """When the last one was written, by a clock that may be ahead of ours."""
        at_seconds = self.progress.checkpoint_seconds
        if at_seconds is None:
            return None
        return min(datetime.fromtimestamp(at_seconds, UTC), self.time)


def told(progress: Progress, basis: Basis) -> dict[str, Any]:
    """For a status; figures to four digits, counts in full."""
    at = datetime.fromtimestamp(progress.at_seconds, UTC)
    saved = progress.checkpoint_seconds
    figures = {
        "model": basis.model,
        "alike": basis.alike,
        "pool": basis.pool,
        "time": timestamp(at),
        "steps": int(progress.steps),
        "ofSteps": None if basis.steps is None else int(basis.steps),
        "stepsBefore": int(progress.steps_before) or None,
        "stepSeconds": _rounded(progress.step_seconds),
        "modelStepSeconds": _rounded(basis.model_step_seconds),
        "samples": len(progress.windows) or None,
        "paceSeconds": _rounded(progress.pace_seconds),
        "lastCheckpointTime": timestamp(datetime.fromtimestamp(saved, UTC)) if saved else None,
        "lastCheckpointSteps": _whole(progress.checkpoint_steps),
        "rated": _rated(basis.rated),
    }
    return {name: value for name, value in figures.items() if value is not None}


def read(document: Told) -> MeasuredRun | None:
    """What :func:`told` made; None for what nobody can read."""
    time, steps = moment_of(document.get("time")), _positive(document, "steps")
    model, pool = document.get("model"), document.get("pool")
    if time is None or steps is None or not isinstance(model, str) or not isinstance(pool, str):
        return None
    step_seconds, before = _positive(document, "stepSeconds"), _positive(document, "stepsBefore")
    samples = min(int(_positive(document, "samples") or 0), WINDOW)
    saved = moment_of(document.get("lastCheckpointTime"))
    progress = Progress(
        at_seconds=time.timestamp(),
        steps_before=before or 0.0,
        counted=max(steps - (before or 0.0), 0.0),
        windows=(step_seconds,) * samples if step_seconds else (),
        pace_seconds=_positive(document, "paceSeconds"),
        checkpoint_seconds=saved.timestamp() if saved else None,
        checkpoint_steps=_positive(document, "lastCheckpointSteps"),
    )
    basis = Basis(
        model,
        str(document.get("alike", "")),
        pool,
        _positive(document, "ofSteps"),
        _positive(document, "modelStepSeconds"),
        _read_rated(mapping(document, "rated")),
    )
    return MeasuredRun(basis, progress, len(progress.windows), time)


def measured(resource: Object) -> MeasuredRun | None:
    """What the status of a TrainingJob tells of its run."""
    return read(mapping(resource, "status", "observed", FIELD))


def kept(before: Told) -> dict[str, Any]:
    """The same, as it was told."""
    return {name: before[name] for name in ("ratio", FIELD) if name in before}


def model_step_seconds(plan: Told) -> float | None:
    """Of ``status.plan``: a step without its checkpoints, as the model has it uncorrected."""
    seconds = shown_step_seconds(plan)
    factor = number(mapping(plan, "correctedBy"), "training")
    return seconds / factor if seconds and factor else seconds


def shown_step_seconds(plan: Told) -> float | None:
    """Of ``status.plan``: a step without its checkpoints, as it was told."""
    seconds, ledger = number(mapping(plan, "predicted"), "stepSeconds"), plan.get("ledger")
    if seconds is None:
        return None
    terms = ledger if isinstance(ledger, list | tuple) else ()
    saving = sum(
        number(each, "seconds") or 0.0
        for each in terms
        if isinstance(each, Mapping) and each.get("term") == CHECKPOINT
    )
    return seconds - saving if saving < seconds else None


def _rated(rated: Rated | None) -> dict[str, Any] | None:
    if rated is None:
        return None
    return {
        "workload": rated.workload,
        "precision": rated.precision,
        "accelerators": rated.accelerators,
        "samples": rated.samples,
    }


def _read_rated(document: Told) -> Rated | None:
    workload, precision = document.get("workload"), document.get("precision")
    accelerators, samples = (number(document, name) for name in ("accelerators", "samples"))
    if not (isinstance(workload, str) and isinstance(precision, str)):
        return None
    if not (accelerators and samples and min(accelerators, samples) >= 1.0):
        return None
    return Rated(workload, precision, int(accelerators), int(samples))


def _rounded(value: float | None) -> float | None:
    return None if value is None else significant(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _positive(document: Told, name: str) -> float | None:
    """A figure of at least 0 and less than infinite."""
    value = number(document, name)
    return value if value is not None and 0.0 <= value < float("inf") else None
