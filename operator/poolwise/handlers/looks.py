"""What was seen at the newest looks at pods, for whoever tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.plan.decision import Key
from poolwise.plan.live.look import Look
from poolwise.plan.live.telling import MeasuredStatus, measured
from poolwise.plan.reading import Told, mapping
from poolwise.plan.steps.telling import RunLook, measured_run


@dataclass(frozen=True, slots=True)
class Looks:
    """By workload; the loops that look write here."""

    training_interval_seconds: float
    services: dict[Key, Look] = field(default_factory=dict)
    runs: dict[Key, RunLook] = field(default_factory=dict)

    def measured(self, key: Key, status: Told) -> MeasuredStatus | None:
        """What a status is to tell, which stands as ``status``; None before the first look."""
        service, run = self.services.get(key), self.runs.get(key)
        if run is not None:
            return measured_run(run, status, self.training_interval_seconds)
        return measured(service, mapping(status, "scaling")) if service else None
