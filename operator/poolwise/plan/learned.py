"""What runs have shown of the model, read off their statuses: no database, and nothing to lose.

A run counts as one measurement of its model on its pool, whatever the number of its windows: they
share its batch, length and layout, of which other runs of the model differ. For runs alike in all
of that it counts as one as well, but nearly all of what it showed lasts (:data:`.ALIKE`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from poolwise.model.correction import Correction, Phase, Sample
from poolwise.plan.corrections import Corrections, Subject
from poolwise.plan.observed import Object
from poolwise.plan.steps.told import Measured, measured

LEAST_WINDOWS = 3
"""Before a run tells anything of others."""


def learned(training_jobs: Iterable[Object], known: Corrections) -> Corrections:
    """``known``, with what the statuses of TrainingJobs tell."""
    found = dict(known.known)
    for subject, sample in _lessons(training_jobs):
        before = found.get(subject, Correction(subject.phase))
        found[subject] = before.with_samples([sample])
    return Corrections(found)


def _lessons(training_jobs: Iterable[Object]) -> Iterator[tuple[Subject, Sample]]:
    for job in training_jobs:
        told = measured(job)
        if told is not None and told.samples >= LEAST_WINDOWS:
            yield from _of_run(told)


def _of_run(told: Measured) -> Iterator[tuple[Subject, Sample]]:
    basis, ratio = told.basis, told.ratio
    if ratio is not None:
        sample = Sample(told.time.timestamp(), ratio)
        yield Subject(basis.model, Phase.TRAINING, basis.pool), sample
        if basis.alike:
            yield Subject(basis.model, Phase.TRAINING, basis.pool, basis.alike), sample
