"""What the cluster measured of its workloads, by model, phase and pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from poolwise.model.corrected import ServingEstimates
from poolwise.model.correction import UNCORRECTED, Correction, Estimate, Phase
from poolwise.model.shapes import Model


@dataclass(frozen=True, slots=True)
class Subject:
    """What a correction holds for, and for nothing else."""

    model: str
    """Name of a preset: shapes that a spec spells out have no name of their own."""
    phase: Phase
    pool: str


@dataclass(frozen=True, slots=True)
class Corrections:
    """All that is known; empty where nothing was measured."""

    known: Mapping[Subject, Correction] = field(default_factory=dict)

    def training(self, model: Model, pool: str, now: datetime) -> Estimate:
        """Of the steps of a run."""
        return self._at(Subject(model.name, Phase.TRAINING, pool), now)

    def serving(self, model: Model, pool: str, now: datetime) -> ServingEstimates:
        """Of the first tokens and the tokens of a service."""
        first, token = (
            self._at(Subject(model.name, phase, pool), now)
            for phase in (Phase.FIRST_TOKEN, Phase.TOKEN)
        )
        return ServingEstimates(first, token)

    def _at(self, subject: Subject, now: datetime) -> Estimate:
        found = self.known.get(subject)
        return UNCORRECTED if found is None else found.at(now.timestamp())
