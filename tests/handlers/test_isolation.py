"""A workload that breaks the planner is told so, and nobody else notices."""

from __future__ import annotations

import pytest

from poolwise.handlers.isolation import decide_or_isolate
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Rejection
from poolwise.plan.observed import Decisions, Observed


def workload(name, kind="TrainingJob"):
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "a", "uid": f"uid-{name}", "generation": 3},
    }


def decide(observed):
    """A planner that cannot stand objects whose name begins with "bad"."""
    outcomes = {}
    for each in (*observed.training_jobs, *observed.inference_services):
        if each["metadata"]["name"].startswith("bad"):
            raise ZeroDivisionError("division\nby zero")
        key = key_of(each)
        outcomes[key] = Rejection(key, each["metadata"]["uid"], 3, "Fine", "nothing wrong")
    return Decisions((), outcomes)


def test_the_sound_are_decided_and_the_faulty_are_told():
    observed = Observed(
        training_jobs=(workload("good"), workload("bad")),
        inference_services=(workload("bad-too", "InferenceService"),),
    )
    outcomes = decide_or_isolate(decide, observed).outcomes
    reasons = {key.name: outcome.reason_code for key, outcome in outcomes.items()}
    assert reasons == {"good": "Fine", "bad": "InternalError", "bad-too": "InternalError"}
    faulty = next(outcome for key, outcome in outcomes.items() if key.name == "bad")
    assert "ZeroDivisionError: division by zero" in faulty.reason
    assert faulty.generation == 3


def test_a_planner_that_fails_on_the_whole_says_so():
    def broken(observed):
        if len(observed.training_jobs) > 1:
            raise RuntimeError("too many")
        return Decisions((), {})

    with pytest.raises(RuntimeError, match="too many"):
        decide_or_isolate(broken, Observed(training_jobs=(workload("a"), workload("b"))))
