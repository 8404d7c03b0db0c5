"""What the cluster measured of its workloads, by model, phase and pool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from poolwise.model.borrowing import prior
from poolwise.model.corrected import ServingEstimates, corrected_training
from poolwise.model.correction import ALIKE, UNCORRECTED, Correction, Estimate, Phase
from poolwise.model.prediction import TrainingPrediction
from poolwise.model.shapes import Model
from poolwise.model.work import TrainingLayout, TrainingWork
from poolwise.plan.learning import Paces, Undescribed, is_undescribed

SPELLED_OUT = ("transformer", "custom")
"""Names of models that a spec describes itself; each shape is a model of its own."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a correction holds for, and for nothing else."""

    model: str
    """:func:`name_of` it."""
    phase: Phase
    pool: str
    alike: str = ""
    """Where it holds for runs of one work in one layout alone: :func:`alike` of both."""


@dataclass(frozen=True, slots=True)
class TrainingEstimates:
    """Of the runs of one work on one pool."""

    others: Estimate = UNCORRECTED
    """By all runs of the model there."""
    work: TrainingWork | None = None
    by_layout: Mapping[str, Estimate] = field(default_factory=dict)
    """By runs of the same work, where there were any."""

    def of(self, layout: TrainingLayout) -> Estimate:
        """Runs of the same work in the same layout tell more than others."""
        if not self.by_layout or self.work is None:
            return self.others
        return self.by_layout.get(alike(self.work, layout), self.others)

    def corrected(
        self, prediction: TrainingPrediction, layout: TrainingLayout
    ) -> TrainingPrediction:
        """What the model says of a layout, as those runs correct it."""
        return corrected_training(prediction, self.of(layout))

    def words(self) -> str:
        """Nothing: the figures tell it (``correctedFrom``)."""
        return ""


@dataclass
class Corrections:
    """All that is known, which never changes; empty where nothing was measured."""

    known: Mapping[Subject, Correction] = field(default_factory=dict)
    paces: Paces = field(default_factory=Paces)
    """Of models whose FLOPs nobody told."""
    _hour: datetime | None = field(default=None, init=False, repr=False, compare=False)
    _estimates: dict[Subject, Estimate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """At that hour."""

    @cached_property
    def _subjects(self) -> Mapping[str, Sequence[Subject]]:
        """By model."""
        found: dict[str, list[Subject]] = {}
        for subject in self.known:
            found.setdefault(subject.model, []).append(subject)
        return found

    def training(
        self, work: TrainingWork, pool: str, now: datetime
    ) -> TrainingEstimates | Undescribed:
        """Of the steps of a run."""
        if is_undescribed(work.model):
            return self.paces.of(workload_of(work), work, pool)
        model = name_of(work.model)
        if model not in self._subjects:
            return TrainingEstimates()
        others = self._at(Subject(model, Phase.TRAINING, pool), now)
        if others == UNCORRECTED:
            return TrainingEstimates()
        layouts = {
            subject.alike
            for subject in self._subjects[model]
            if subject.alike and (subject.pool == pool or work.model.name in SPELLED_OUT)
        }
        of_layouts = {
            each: self._at(Subject(model, Phase.TRAINING, pool, each), now) for each in layouts
        }
        return TrainingEstimates(others, work, of_layouts)

    def serving(self, model: Model, pool: str, now: datetime) -> ServingEstimates:
        """Of the first tokens and the tokens of a service."""
        name = name_of(model)
        if name not in self._subjects:
            return ServingEstimates()
        first, token = (
            self._at(Subject(name, phase, pool), now) for phase in (Phase.FIRST_TOKEN, Phase.TOKEN)
        )
        return ServingEstimates(first, token)

    def of_model(self, model: Model, now: datetime) -> Paces | tuple[tuple[Subject, Estimate], ...]:
        """All that is known of a model; the same until something new is, or it has aged."""
        if is_undescribed(model):
            return self.paces
        subjects = self._subjects.get(name_of(model), ())
        return tuple((subject, self._at(subject, now)) for subject in subjects)

    def _at(self, subject: Subject, now: datetime) -> Estimate:
        """By the hour, and remembered: passes ask for the same again and again."""
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour = hour
            self._estimates.clear()
        if subject not in self._estimates:
            self._estimates[subject] = self._worked_out(subject, hour)
        return self._estimates[subject]

    def _worked_out(self, subject: Subject, now: datetime) -> Estimate:
        """Of a preset by what was measured there; the description of others may be off, which
        shows on all pools."""
        found = self.known.get(subject)
        others = self._elsewhere(subject) if _is_spelled_out(subject.model) else ()
        if found is None and not others:
            return UNCORRECTED
        lasting, now_seconds = ALIKE if subject.alike else None, now.timestamp()
        before = prior(others, subject.phase, now_seconds, lasting)
        own = found or Correction(subject.phase)
        return own.at(now_seconds, lasting=lasting, prior=before)

    def _elsewhere(self, subject: Subject) -> tuple[Correction, ...]:
        """Of the same on other pools."""
        return tuple(
            self.known[each]
            for each in self._subjects.get(subject.model, ())
            if each.pool != subject.pool and replace(each, pool=subject.pool) == subject
        )


def _is_spelled_out(model: str) -> bool:
    return model.partition("-")[0] in SPELLED_OUT


@lru_cache(maxsize=1024)
def name_of(model: Model) -> str:
    """A preset's name; of a shape that a spec spells out the name and what tells it from others.

    >>> name_of(Model("llama-3.1-8b", shape=None))
    'llama-3.1-8b'
    """
    return f"{model.name}-{_digest(model.shape)}" if model.name in SPELLED_OUT else model.name


def workload_of(work: TrainingWork) -> str:
    """The same for runs of the same work, whatever their length, layout and number of
    accelerators; those of one model are kin (:mod:`poolwise.plan.learning`)."""
    return f"{name_of(work.model)}/{_digest(replace(work, steps=None))}"


def alike(work: TrainingWork, layout: TrainingLayout) -> str:
    """The same for runs whose steps take the same time: all of the work but its length."""
    return _digest(replace(work, steps=None), layout)


def _digest(*values: object) -> str:
    """Statuses keep it over upgrades of the operator, so no name of a class is in it, nor a field
    that has its default: one more of those would have all that was learned forgotten."""
    spelled = json.dumps([_spelled(each) for each in values], sort_keys=True, default=str)
    return hashlib.sha256(spelled.encode()).hexdigest()[:12]


def _spelled(value: object) -> object:
    """For JSON: what is not as it is by default, by its name."""
    if is_dataclass(value):
        named = ((each, getattr(value, each.name)) for each in fields(value))
        return {each.name: _spelled(told) for each, told in named if told != _default(each)}
    if isinstance(value, tuple):
        return [_spelled(each) for each in value]
    return value


def _default(of: Field[Any]) -> object:
    return of.default if of.default_factory is MISSING else of.default_factory()
