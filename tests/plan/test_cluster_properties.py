"""What holds for any cluster and any workloads."""

import copy
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.plan.cluster import decide
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind, Plan
from poolwise.plan.memo import Memo
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    NOW,
    decided,
    foreign_pod,
    h100,
    held,
    job,
    key,
    l40s,
    observed,
    running,
    service,
)
from tests.plan.junk import broken
from tests.plan.machines import CALIBRATION, TABLES

workloads = st.lists(
    st.one_of(
        st.builds(
            lambda count, age: ("job", count, age),
            st.sampled_from([1, 2, 4, 8, 12, 16, 32]),
            st.integers(0, 9),
        ),
        st.builds(
            lambda rate, age: ("service", rate, age), st.sampled_from(["1", "9"]), st.integers(0, 9)
        ),
    ),
    max_size=7,
)


def made(drawn):
    return [
        job(f"w{index}", size, age) if kind == "job" else service(f"w{index}", size, age)
        for index, (kind, size, age) in enumerate(drawn)
    ]


MIXED = [*h100(3), *l40s(2)]
MEMO = Memo()
NEVER = Reason.NO_FEASIBLE_POOL


def quickly(*workloads, **more):
    seen = observed(MIXED, *workloads, **more)
    return decide(seen, TABLES, Settings(), CALIBRATION, NOW, MEMO)


@settings(max_examples=40, deadline=None)
@given(workloads, st.integers(0, 5))
def test_no_node_is_ever_promised_twice(drawn, busy):
    pods = [foreign_pod("h100-0", busy)] if busy else []
    for node, count in held(quickly(*made(drawn), pods=pods)).items():
        assert count <= 8 - (busy if node == "h100-0" else 0)


@settings(max_examples=25, deadline=None)
@given(workloads, st.randoms(use_true_random=False))
def test_the_order_of_objects_changes_nothing(drawn, shuffle):
    given_workloads = made(drawn)
    nodes = list(MIXED)
    expected = quickly(*given_workloads)
    shuffle.shuffle(given_workloads)
    shuffle.shuffle(nodes)
    seen = observed(nodes, *given_workloads)
    assert decide(seen, TABLES, Settings(), CALIBRATION, NOW, MEMO) == expected


def test_a_memo_changes_no_answer():
    given_workloads = [job("a", 8), job("b", 16), service()]
    memo = Memo()
    seen = observed(MIXED, *given_workloads)
    cold = decide(seen, TABLES, Settings(), CALIBRATION, NOW)
    for _ in range(2):
        assert decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo) == cold


@settings(max_examples=10, deadline=None)
@given(workloads, st.lists(st.integers(0, 8), min_size=2, max_size=3), st.integers(0, 3600))
def test_a_memo_of_other_passes_changes_no_answer(drawn, busy, seconds):
    """Room comes and goes, time passes, and what was judged in between is remembered."""
    memo, given_workloads = Memo(), made(drawn)
    for turn, count in enumerate([*busy, busy[0]]):
        pods = [foreign_pod("h100-0", count)] if count else []
        seen = observed(MIXED, *given_workloads, pods=pods)
        now = NOW + timedelta(seconds=turn * seconds)
        remembered = decide(seen, TABLES, Settings(), CALIBRATION, now, memo)
        assert remembered == decide(seen, TABLES, Settings(), CALIBRATION, now)


@settings(max_examples=20, deadline=None)
@given(workloads)
def test_what_can_start_does_not_wait_for_ever(drawn):
    """No livelock: as long as what started ends, everybody has had a turn after as many passes."""
    waiting, standing = made(drawn), Standing()
    for _ in range(len(drawn) + 1):
        seen = observed(MIXED, *waiting, standing=standing)
        found = decide(seen, TABLES, Settings(), CALIBRATION, NOW, MEMO)
        standing = found.standing
        names = {at.name for at, plan in found.outcomes.items() if is_placed(plan)}
        waiting = [each for each in waiting if each["metadata"]["name"] not in names]
        if not names:
            break
    left = {each["metadata"]["name"] for each in waiting}
    never = {at.name for at, plan in found.outcomes.items() if plan.reason_code == NEVER}
    assert left == never


def is_placed(outcome):
    return isinstance(outcome, Plan) and outcome.placed


def test_objects_are_never_changed():
    given_workloads = [job("a", 8), service()]
    seen = observed(MIXED, *given_workloads, children=running(MIXED, *given_workloads))
    before = copy.deepcopy(seen)
    decide(seen, TABLES, Settings(), CALIBRATION, NOW)
    assert seen == before


def test_same_name_in_two_namespaces_and_kinds():
    twin = job("same", 8)
    twin["metadata"] = {**twin["metadata"], "namespace": "other", "uid": "u2"}
    answer = decided(h100(3), job("same", 8), twin, service("same"))
    assert len(answer.outcomes) == 3
    assert Key(Kind.INFERENCE_SERVICE, "research", "same") in answer.outcomes
    assert max(held(answer).values()) <= 8


@settings(max_examples=150, deadline=None)
@given(broken(job("odd")) | broken(service("odd")))
def test_no_object_breaks_the_pass_or_blocks_another(odd):
    answer = quickly(odd, job("good", 8))
    assert len(answer.outcomes) == 2
    good = answer.outcomes[key("good")]
    assert isinstance(good, Plan)
    assert good.candidates
