"""A memory that changes nothing but the time: passes with one and without it decide alike."""

import copy
import random
from functools import partial
from typing import Any

from poolwise.plan.cluster import decide
from poolwise.plan.memo import PASSES, Last, Lately, Memo, Numbers, Recent
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, foreign_pod, h100, job, l40s, observed, running, service
from tests.plan.machines import CALIBRATION, TABLES


def test_what_is_the_same_object_is_asked_once():
    asked = []

    def answer(subject):
        asked.append(subject)
        return subject["n"] * 2

    recent = Recent()
    one, two, three = {"n": 1}, {"n": 2}, {"n": 3}
    assert list(recent.each([one, two], answer)) == [2, 4]
    assert list(recent.each([one, two], answer)) == [2, 4]
    assert list(recent.each([three, two], answer)) == [6, 4]
    assert list(recent.each([one], answer)) == [2]
    assert asked == [one, two, three, one]
    assert list(recent.each([], answer)) == []


def test_an_equal_object_may_be_another_one():
    recent = Recent()
    assert list(recent.each([{"n": 1}], id)) != [0]
    first, second = {"n": 1}, {"n": 1}
    assert list(recent.each([first], id)) == [id(first)]
    assert list(recent.each([second], id)) == [id(second)]


def test_the_last_answer_holds_for_equal_subjects():
    last, answers = Last(), iter("abcd")
    assert last.of([[1], "x"], lambda: next(answers)) == "a"
    assert last.of([[1], "x"], lambda: next(answers)) == "a"
    assert last.of([[2], "x"], lambda: next(answers)) == "b"
    assert last.of([[1], "x"], lambda: next(answers)) == "c"


def test_what_nobody_asked_for_since_the_last_time_is_forgotten():
    lately, asked = Lately(), []

    def answer(question):
        asked.append(question)
        return question

    def ask(question):
        return lately.get(question, partial(answer, question))

    for _ in range(3):
        assert ask("each time") == "each time"
        lately.age()
    ask("once")
    lately.age()
    ask("once")
    assert asked == ["each time", "once"]
    lately.age()
    lately.age()
    assert len(lately) == 0
    ask("once")
    assert asked == ["each time", "once", "once"]


def test_a_number_is_never_given_twice():
    numbers = Numbers()
    one, pool = numbers.of("one"), numbers.of_newest("pool", ["as it is"])
    assert numbers.of("one") == one
    assert numbers.of_newest("pool", ["as it is"]) == pool
    numbers.age()
    numbers.age()
    assert len(numbers) == 0
    again = [numbers.of("one"), numbers.of_newest("pool", ["as it is"]), numbers.of("two")]
    assert len({one, pool, *again}) == 5


def test_a_cluster_that_never_stands_still_is_not_remembered_for_ever():
    """What waits is judged anew in each pass, for room that is never the same again."""
    memo, waits = Memo(), job("waits", count=64)
    sizes = []
    for step in range(6 * PASSES):
        pod = foreign_pod("l40s-0", 1, "p")
        pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{step + 1}m"}
        seen = observed([*h100(1), *l40s(1)], waits, pods=[pod])
        decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo)
        sizes.append(len(memo) + len(memo.candidates) + len(memo.numbers))
    assert max(sizes[3 * PASSES :]) <= max(sizes[: 3 * PASSES])


def test_passes_over_a_changing_cluster_decide_as_if_each_was_the_first():
    draw = random.Random(7)
    memo = Memo()
    nodes = [*h100(3), *l40s(2)]
    jobs = [job(f"job-{index}", count=8) for index in range(4)]
    pods: list[Any] = []
    children: list[Any] = []
    placed: list[Any] = []
    for step in range(12):
        at = draw.randrange(len(nodes))
        changed = copy.deepcopy(nodes[at])
        changed["spec"]["unschedulable"] = draw.random() < 0.3
        nodes = [*nodes[:at], changed, *nodes[at + 1 :]]
        if draw.random() < 0.5:
            pods = [foreign_pod(draw.choice(nodes)["metadata"]["name"], 1, f"p{step}"), *pods[:3]]
        if draw.random() < 0.5 and jobs:
            placed.append(jobs.pop())
            children = [*children, *running(h100(3), placed[-1])]
        seen = observed(nodes, *placed, *jobs, service(), pods=pods, children=children)
        first = decide(seen, TABLES, Settings(), CALIBRATION, NOW)
        again = decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo)
        assert again.pools == first.pools
        assert again.outcomes == first.outcomes
        assert again.free_accelerators == first.free_accelerators
