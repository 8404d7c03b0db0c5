"""What ran a job is told to go once the job's own status tells of the end, and never before."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.children.cleanup import cleanup
from tests.plan.children.given import training_job


def job(*told: str, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": each, "status": "True"} for each in told]
    return {**training_job(**spec), "status": {"conditions": conditions}}


def child(kind: str = "Job", **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "spec": spec}


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_it_is_told_at_the_end(kind, end):
    over = job("Planned", end, ttlSecondsAfterFinished=0)
    assert cleanup(over, child(kind)) == {"spec": {"ttlSecondsAfterFinished": 0}}
    assert cleanup(over, child(kind, ttlSecondsAfterFinished=0)) == {}


def test_it_is_not_told_before():
    runs = job("Planned", ttlSecondsAfterFinished=60)
    assert cleanup(runs, child()) == {}


def test_what_an_older_version_told_at_the_start_is_taken_back():
    runs = job(ttlSecondsAfterFinished=60)
    told = child(ttlSecondsAfterFinished=60)
    assert cleanup(runs, told) == {"spec": {"ttlSecondsAfterFinished": None}}


def test_it_follows_the_spec_after_the_end():
    over = job("Complete")
    told = child(ttlSecondsAfterFinished=60)
    assert cleanup(over, told) == {"spec": {"ttlSecondsAfterFinished": None}}


def test_a_train_job_has_no_such_field():
    assert cleanup(job("Complete", ttlSecondsAfterFinished=60), child("TrainJob")) == {}
