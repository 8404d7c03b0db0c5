"""A workload that breaks the planner, alone or beside others, is told so; nobody else notices."""

from __future__ import annotations

from dataclasses import replace

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
    outcomes = decide_or_isolate(decide, observed, {}).outcomes
    reasons = {key.name: outcome.reason_code for key, outcome in outcomes.items()}
    assert reasons == {"good": "Fine", "bad": "InternalError", "bad-too": "InternalError"}
    faulty = next(outcome for key, outcome in outcomes.items() if key.name == "bad")
    assert "ZeroDivisionError: division by zero" in faulty.reason
    assert faulty.generation == 3


def aged(name, day):
    found = workload(name)
    found["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    return found


def together(*pairs):
    """A planner that cannot stand some objects beside others."""

    def decided(observed):
        there = {each["metadata"]["name"] for each in observed.training_jobs}
        if any(pair <= there for pair in pairs):
            raise ZeroDivisionError("division by zero")
        return decide(observed)

    return decided


@pytest.mark.parametrize(
    ("count", "old", "young"), [(2, 0, 1), (3, 0, 1), (3, 1, 2), (9, 0, 8), (9, 3, 5), (9, 7, 8)]
)
def test_of_those_that_it_fails_on_together_the_youngest_is_left_out(count, old, young):
    jobs = tuple(aged(f"j{each}", each + 1) for each in reversed(range(count)))
    fails = together({f"j{old}", f"j{young}"})
    outcomes = decide_or_isolate(fails, Observed(training_jobs=jobs), {}).outcomes
    reasons = {key.name: outcome.reason_code for key, outcome in outcomes.items()}
    others = {f"j{each}": "Fine" for each in range(count)}
    assert reasons == {**others, f"j{young}": "InternalError"}


def test_several_that_it_fails_on_in_several_ways_are_left_out():
    jobs = (*(aged(f"j{each}", each) for each in range(1, 9)), workload("bad"))
    fails = together({"j1", "j4"}, {"j2", "j7"})
    outcomes = decide_or_isolate(fails, Observed(training_jobs=jobs), {}).outcomes
    told = sorted(key.name for key, each in outcomes.items() if each.reason_code != "Fine")
    assert told == ["bad", "j4", "j7"]
    assert len(outcomes) == 9


def test_a_planner_that_fails_without_any_workload_says_so():
    def broken(observed):
        raise RuntimeError("no nodes")

    with pytest.raises(RuntimeError, match="no nodes"):
        decide_or_isolate(broken, Observed(training_jobs=(workload("a"), workload("b"))), {})


def test_a_planner_that_bears_hardly_any_is_not_asked_for_ever():
    def broken(observed):
        if len(observed.training_jobs) > 1:
            raise RuntimeError("too many")
        return decide(observed)

    jobs = tuple(aged(f"j{each}", each + 1) for each in range(20))
    with pytest.raises(RuntimeError, match="too many"):
        decide_or_isolate(broken, Observed(training_jobs=jobs), {})


def test_whom_the_pass_before_left_out_is_not_searched_for_again():
    passes = 0

    def counted(observed):
        nonlocal passes
        passes += 1
        return decide(observed)

    observed = Observed(training_jobs=tuple(workload(f"w{each}") for each in range(50)))
    observed = replace(observed, training_jobs=(*observed.training_jobs, workload("bad")))
    first = decide_or_isolate(counted, observed, {})
    searched, passes = passes, 0
    second = decide_or_isolate(counted, observed, first.outcomes)
    assert second.outcomes == first.outcomes
    assert searched > 50 and passes == 2


@pytest.mark.parametrize("change", [{"generation": 4}, {"uid": "another"}, {"name": "good"}])
def test_who_was_changed_is_judged_anew(change):
    bad = workload("bad")
    first = decide_or_isolate(decide, Observed(training_jobs=(bad,)), {})
    mended = {**bad, "metadata": {**bad["metadata"], **change}}
    observed = Observed(training_jobs=(mended, workload("bad-too")))
    outcomes = decide_or_isolate(decide, observed, first.outcomes).outcomes
    assert {key.name for key in outcomes} == {mended["metadata"]["name"], "bad-too"}
    told = outcomes[key_of(mended)]
    assert (told.reason_code == "Fine") == (change == {"name": "good"})
    assert told.generation == mended["metadata"]["generation"] or told.reason_code == "Fine"


def test_who_is_borne_again_is_planned_at_once():
    observed = Observed(training_jobs=(aged("old", 1), aged("young", 2)))
    first = decide_or_isolate(together({"old", "young"}), observed, {})
    assert [key.name for key, each in first.outcomes.items() if each.reason_code != "Fine"] == [
        "young"
    ]
    mended = decide_or_isolate(decide, observed, first.outcomes)
    assert {each.reason_code for each in mended.outcomes.values()} == {"Fine"}
