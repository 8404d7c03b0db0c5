"""What the pictures are drawn from: devices of the table, and the examples as they are decided."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from e2e import profiles
from poolwise import tables
from poolwise.api.validation import defaulted
from poolwise.model import presets
from poolwise.model.calibration import shipped
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import ServingPrediction, TrainingPrediction
from poolwise.model.shapes import Model
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Candidate, Kind, Plan
from poolwise.plan.nodes.machines import device
from poolwise.plan.observed import Observed
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import Request, Workload
from poolwise.settings import Settings

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples"
PROFILE = "demo"
TABLES = tables.load()
CALIBRATION = shipped(TABLES)
SETTINGS = Settings()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Example:
    """One example alone on the demo's nodes: what it asks, and how it does on each pool."""

    name: str
    request: Request
    candidates: dict[str, Candidate]
    """By accelerator; ``CPU`` is one."""
    chosen: Candidate

    def prediction(self, accelerator: str) -> TrainingPrediction | ServingPrediction:
        """What is predicted on an accelerator where it can run."""
        found = self.candidates[accelerator].prediction
        assert found is not None, f"{self.name} on {accelerator}"
        return found

    def layout(self, accelerator: str) -> TrainingLayout | ServingLayout:
        """The shape that is best there."""
        found = self.candidates[accelerator].layout
        assert found is not None, f"{self.name} on {accelerator}"
        return found


@functools.cache
def examples() -> dict[str, Example]:
    """All files of ``examples/``, each decided as if it were alone."""
    every = [_example(path) for path in sorted(FOLDER.glob("*.yaml"))]
    return {each.name: each for each in every}


@functools.cache
def machine(accelerator: str) -> Machine:
    """A machine of the demo's cluster."""
    observed = Observed(nodes=profiles.render(PROFILE))
    pools = decide(observed, TABLES, SETTINGS, CALIBRATION, NOW).pools
    found = next(pool.machine for pool in pools if pool.accelerator == accelerator)
    assert found is not None
    return found


def shipped_device(accelerator: str) -> Device:
    """A device of the shipped table."""
    row = TABLES.accelerator(accelerator)
    assert row is not None, accelerator
    return device(row)


def model(name: str) -> Model:
    """A model of the shipped table."""
    row = TABLES.model(name)
    assert row is not None, name
    return presets.model(row)


def _example(path: Path) -> Example:
    document: dict[str, Any] = dict(defaulted(yaml.safe_load(path.read_text(encoding="utf-8"))))
    kind = Kind(document["kind"])
    nodes = profiles.render(PROFILE)
    if kind is Kind.TRAINING_JOB:
        observed = Observed(nodes=nodes, training_jobs=[document])
    else:
        observed = Observed(nodes=nodes, inference_services=[document])
    decisions = decide(observed, TABLES, SETTINGS, CALIBRATION, NOW)
    [outcome] = decisions.outcomes.values()
    assert isinstance(outcome, Plan) and outcome.chosen is not None, path.name
    wanted = workload(document, kind, TABLES, SETTINGS, {})
    assert isinstance(wanted, Workload)
    by_accelerator = {each.accelerator or "": each for each in outcome.candidates}
    return Example(document["metadata"]["name"], wanted.request, by_accelerator, outcome.chosen)
