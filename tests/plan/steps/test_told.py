"""Progress goes into a status and comes back; the status moves only when there is news."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poolwise.plan.learning import Rated
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.steps.progress import Progress, Rhythm
from poolwise.plan.steps.reading import read as read_text
from poolwise.plan.steps.sample import METRICS, STEPS, RunSample
from poolwise.plan.steps.telling import RunLook, available, measured_run
from poolwise.plan.steps.told import (
    Basis,
    model_step_seconds,
    read,
    shown_step_seconds,
    told,
)
from tests.plan.steps.given import START, Loop

BASIS = Basis("Llama-3.1-8B", "5f", "h100", 5000.0, 1.6)
INTERVAL = 15.0
PLAN = {
    "pool": "h100",
    "predicted": {"stepSeconds": 2.2},
    "correctedBy": {"training": 1.25},
    "ledger": [{"term": "Compute", "seconds": 2.0}, {"term": "Checkpoint", "seconds": 0.2}],
}


def after(seconds: float, loop: Loop | None = None, progress: Progress | None = None) -> Progress:
    loop, progress = loop or Loop(2.0), progress or Progress()
    for _ in range(int(seconds / INTERVAL)):
        sample = loop.go(INTERVAL).sample()
        progress = progress.after(sample, "a/0", 256.0, Rhythm.of(INTERVAL))
    return progress


@pytest.mark.parametrize("rated", [None, Rated("custom-1/2", "bf16", 8, 256)])
def test_what_is_told_is_read_again(rated):
    basis = replace(BASIS, rated=rated)
    loop = Loop(2.0)
    found = after(900.0, loop.save(1.0), after(900.0, loop))
    again = read(told(found, basis))
    assert again is not None
    assert again.basis == basis
    assert again.ratio == pytest.approx(1.25)
    assert again.remaining_seconds == pytest.approx((5000 - found.steps) * 2.0, rel=0.01)
    for name in ("steps", "step_seconds", "checkpoint_steps", "steps_before"):
        assert getattr(again.progress, name) == pytest.approx(getattr(found, name)), name
    assert again.samples == len(found.windows)
    assert told(replace(again.progress, process=found.process), basis) == told(found, basis)


def looked(progress: Progress, at_seconds: float, steps: int, saved_seconds: float) -> Progress:
    text = (
        f"training_steps_total {steps}\n"
        f"training_last_checkpoint_timestamp_seconds {saved_seconds}\n"
    )
    sample = read_text(text, "run-0", at_seconds)
    assert isinstance(sample, RunSample), sample
    return progress.after(sample, "a/0", 256.0, Rhythm.of(INTERVAL))


def test_a_checkpoint_that_an_earlier_process_told_of_has_no_later_steps():
    """Else what a stop loses would be taken as done."""
    saved_seconds = START + 20.7
    found = looked(Progress(), START, 100, START - 900.0)
    found = looked(found, START + 30.0, 130, saved_seconds)
    found = looked(found, START + 600.0, 700, saved_seconds)
    assert found.checkpoint_steps == 120.0
    recalled = read(told(found, BASIS))
    assert recalled is not None
    again = looked(recalled.progress, START + 630.0, 730, saved_seconds)
    assert again.checkpoint_steps == 120.0


@pytest.mark.parametrize("at_seconds", [-60.0, 40.0], ids=["before", "ahead"])
def test_nobody_counts_work_from_a_checkpoint_to_come(at_seconds):
    found = looked(Progress(), START, 100, START + at_seconds)
    again = read(told(found, BASIS))
    assert again is not None and again.checkpoint is not None
    assert again.checkpoint.timestamp() == START + min(at_seconds, 0.0)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"time": "soon", "steps": 1, "model": "m", "pool": "p"},
        {"time": "2026-11-24T12:00:00Z", "steps": "many", "model": "m", "pool": "p"},
        {"time": "2026-11-24T12:00:00Z", "steps": -1, "model": "m", "pool": "p"},
        {"time": "2026-11-24T12:00:00Z", "steps": 1, "model": 7, "pool": "p"},
    ],
)
def test_what_somebody_else_wrote_is_nothing(document):
    assert read(document) is None


def test_checkpoints_and_corrections_are_no_part_of_what_the_model_said():
    assert shown_step_seconds(PLAN) == pytest.approx(2.0)
    assert model_step_seconds(PLAN) == pytest.approx(1.6)
    assert model_step_seconds({}) is None


def status_after(look: RunLook, status: dict[str, Any]) -> dict[str, Any]:
    observed = measured_run(look, status, INTERVAL).observed
    return {"plan": PLAN, "observed": observed}


def test_the_status_moves_with_news_and_else_seldom():
    loop, writes = Loop(2.0), 0
    status: dict[str, Any] = {"plan": PLAN, "observed": {}}
    progress = Progress()
    for _ in range(int(7200 / INTERVAL)):
        progress = after(INTERVAL, loop, progress)
        now = status_after(RunLook(progress, BASIS, loop.sample()), status)
        writes += now != status
        status = now
    assert 7200 / 300 <= writes <= 7200 / 300 + 4
    assert status["observed"]["ratio"] == 1.0
    assert status["observed"]["training"]["steps"] == pytest.approx(3600, abs=160)
    progress = after(INTERVAL * 4, loop.save(1.0), progress)
    now = status_after(RunLook(progress, BASIS, loop.sample()), status)
    assert "lastCheckpointTime" in now["observed"]["training"]


def test_what_was_told_stands_while_nobody_answers():
    status = status_after(RunLook(after(900.0), BASIS, Loop().sample()), {"plan": PLAN})
    silent = RunLook(Progress(), BASIS, Fault("no answer within 3 s"))
    assert status_after(silent, status) == status
    assert available(silent).message.startswith("rank 0: no answer within 3 s")


def test_the_condition():
    whole = RunSample("r", START, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert available(RunLook(Progress(), BASIS, whole)).status is True
    partly = available(RunLook(Progress(), BASIS, RunSample("r", START, steps=1.0)))
    assert partly.status is True
    assert METRICS[1] in partly.message and METRICS[3] in partly.message
    assert STEPS not in partly.message
    waiting = available(RunLook(Progress(), BASIS, None))
    assert (waiting.status, waiting.reason) == (None, "NotMeasured")
    unasked = available(RunLook(Progress(), BASIS, None, has_port=False))
    assert (unasked.status, unasked.reason) == (False, "NoMetricsPort")
