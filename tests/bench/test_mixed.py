"""Queues of runs and services: what is drawn, what comes of them, and the best assignment."""

from bench.mixed.outcomes import assigned, best, followed, outcome
from bench.mixed.queues import MIXES, queue
from tests.plan.joint.cluster_given import HOUR, job, option, pool, problem, running


def service(key, **aims):
    """By pool: eight accelerators that cost so much an hour."""
    return job(key, *(option(at, None, cost_per_hour=cost) for at, cost in aims.items()))


def test_a_seed_draws_the_same_queue_again():
    assert queue(MIXES[0], 3) == queue(MIXES[0], 3) != queue(MIXES[0], 4)


def test_what_services_pay_and_when_runs_are_done_are_told():
    work = [service("chat", a=1.0, b=3.0), job("run", option("a", 2, cost_per_hour=5.0))]
    starts = {"chat": (60.0, work[0].options[1]), "run": (HOUR, work[1].options[0])}
    found = outcome([*work, job("never", option("a", 1))], starts)
    assert (found.for_ever, found.lost, found.waited_seconds) == (1, 2.0, 60.0)
    assert (found.done_seconds, found.per_hour, found.cost) == (3 * HOUR, 3.0, 10.0)


def test_who_is_kept_to_an_option_starts_when_it_has_room():
    busy = running("busy", option("a", 4), {"a-0": 1})
    runs = [job("long", option("a", 9)), job("short", option("a", 1))]
    given = problem([pool("a", 0)], busy, *runs)
    starts = assigned(given, runs, [each.options[0] for each in runs])
    assert {key: at for key, (at, _) in starts.items()} == {"short": 4 * HOUR, "long": 5 * HOUR}


def test_the_best_assignment_gives_each_service_what_it_loses_most_without():
    work = [service("one", a=1.0, b=2.0), service("other", a=1.0, b=9.0)]
    given = problem([pool("a", 8), pool("b", 8)], *work)
    assert best(given).lost == 1.0


def test_the_planner_is_followed_until_nobody_waits():
    runs = [job(f"run-{at}", option("a", 1)) for at in range(3)]
    late = job("late", option("a", 1), created=10 * HOUR)
    found = followed(problem([pool("a", 8)], *runs, late))
    assert found.for_ever == 0
    assert found.done_seconds == (1 + 2 + 3 + 1) * HOUR
