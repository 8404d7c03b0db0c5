"""What workloads have shown of the model, read off their statuses: no database, nothing to lose.

A run counts as one measurement of its model on its pool, whatever the number of its windows: they
share its batch, length and layout, of which other runs of the model differ. For runs alike in all
of that it counts as one as well, but nearly all of what it showed lasts (:data:`.ALIKE`).

A service counts as one measurement of its tokens: its controller has learned how much longer a step
takes than the model says of that step at the load that was seen, and keeps that in the status. The
controller itself works with the uncorrected model and this factor, so that nothing is corrected
twice: what is told here reaches placements alone. First tokens are left out: what is observed of
them is mostly the queue, which no factor on a replica's clock explains. So services of models that
only read, which have no tokens to time, tell nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from poolwise.model.correction import Correction, Phase, Sample
from poolwise.plan.learning import Pace, Paces
from poolwise.plan.learning.corrections import Corrections, Subject
from poolwise.plan.live.remembering import read
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, moment_of
from poolwise.plan.steps.told import MeasuredRun
from poolwise.plan.wording import significant

LEAST_WINDOWS = 3
"""Before a run tells anything of others."""
LEAST_REQUESTS = 50.0
"""That a service must have served of late, before it does."""

MOST_RATES = 300
"""Runs whose rates are compared with one another, all with all."""

_DIGITS = 3
"""Of a ratio: what moves less makes no new plan."""

Lesson = tuple[Subject, Sample]


def learned(lessons: Iterable[Lesson], paces: Paces, known: Corrections) -> Corrections:
    """``known``, and what workloads tell."""
    found: dict[Subject, list[Sample]] = {}
    for subject, sample in lessons:
        found.setdefault(subject, []).append(sample)
    corrections = dict(known.known)
    for subject, samples in found.items():
        before = corrections.get(subject, Correction(subject.phase))
        corrections[subject] = before.with_samples(samples)
    return Corrections(corrections, paces)


def of_runs(runs: Iterable[MeasuredRun | None]) -> Iterator[Lesson]:
    """What TrainingJobs tell of the model, those that have ended included."""
    for told in _well_measured(runs):
        if told.basis.rated is None:
            yield from _of_run(told)


def paces(runs: Iterable[MeasuredRun | None]) -> Iterator[Pace]:
    """What those tell whose model is not described, the newest runs."""
    found = [
        (told.time, Pace(rated, told.basis.pool, significant(step_seconds, _DIGITS)))
        for told in _well_measured(runs)
        if (rated := told.basis.rated) and (step_seconds := told.progress.step_seconds)
    ]
    newest = sorted(found, key=lambda each: each[0], reverse=True)
    yield from (pace for _, pace in newest[:MOST_RATES])


def _well_measured(runs: Iterable[MeasuredRun | None]) -> Iterator[MeasuredRun]:
    for told in runs:
        if told is not None and told.samples >= LEAST_WINDOWS:
            yield told


def _of_run(told: MeasuredRun) -> Iterator[Lesson]:
    basis, ratio = told.basis, told.ratio
    if ratio is not None:
        sample = Sample(told.time.timestamp(), significant(ratio, _DIGITS))
        yield Subject(basis.model, Phase.TRAINING, basis.pool), sample
        if basis.alike:
            yield Subject(basis.model, Phase.TRAINING, basis.pool, basis.alike), sample


def of_service(model: str, speeds: Mapping[str, Sample]) -> Iterator[Lesson]:
    """What an InferenceService of that model tells, by its :func:`speeds`."""
    for pool, sample in speeds.items():
        yield Subject(model, Phase.TOKEN, pool), sample


def speeds(service: Object) -> Mapping[str, Sample]:
    """Time of a token over what the model says of it at that load, by pool."""
    scaling = mapping(service, "status", "scaling")
    time = moment_of(scaling.get("time"))
    found = read(scaling.get("memory"), time.timestamp()) if time is not None else None
    if found is None or time is None:
        return {}
    memory, _ = found
    if memory.finished < LEAST_REQUESTS:
        return {}
    at_seconds = time.timestamp()
    return {
        pool: Sample(at_seconds, significant(math.exp(slowness), _DIGITS))
        for pool, slowness in memory.log_slowness.items()
        if slowness
    }
