"""What makes the planner look at a workload; refusals, and how long one lasts, whatever else asks
for another attempt meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import replace

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.queue import WorkQueue
from poolwise.cluster.resources import TRAINING_JOBS
from poolwise.handlers.planner import KueueObject, Planner, Target
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind, Outcome, Plan, Rejection
from poolwise.plan.observed import CheckAnswer, Decisions, Observed
from poolwise.plan.pool import Price
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.apiserver.operated import training_job
from tests.cluster.given import job
from tests.plan.children.given import h100_pool, placed_job

KEY = Key(Kind.TRAINING_JOB, "a", "bad")
HOUR_SECONDS = 3600.0


class Backoff(WorkQueue[Target]):
    """Whose delays the test gives."""

    def __init__(self, delays_seconds: Iterable[float]) -> None:
        super().__init__(1.0, 1.0, lambda: 1.0)
        self._delays_seconds = iter(delays_seconds)

    def backoff_seconds(self, key: Target) -> float:
        return next(self._delays_seconds)


def planner(*delays_seconds: float) -> Planner:
    return Planner(
        Cache(),
        Backoff(delays_seconds),
        lambda observed: Decisions((), {}),
        lambda plan, decisions: (),
        Settings(),
        Metrics(),
    )


def refuse(made: Planner) -> None:
    made.refuse(Rejection(KEY, "uid", 1, Reason.FORBIDDEN, "may not create jobs"))


async def _timers_that_are_due() -> None:
    await asyncio.sleep(0.01)


def test_a_refusal_ends_by_itself():
    async def refused() -> bool:
        made = planner(0.0)
        refuse(made)
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert not asyncio.run(refused())


def test_a_refusal_takes_the_place_of_the_plan_at_once():
    """The next pass gives its place away; until then nobody is to try the plan once more."""

    async def decided() -> Outcome:
        made = planner(HOUR_SECONDS)
        made.decisions = Decisions((), {KEY: placed_job()})
        refuse(made)
        return made.decisions.outcomes[KEY]

    assert isinstance(asyncio.run(decided()), Rejection)


def test_one_for_good_ends_with_its_object_alone():
    async def refused() -> list[bool]:
        made = planner()
        made.refuse(Rejection(KEY, "uid", 1, Reason.CHILD_REFUSED, "ends"), for_good=True)
        made.forgive(KEY)  # something of it changed
        lasts = made.is_refused(KEY)
        made.forget(KEY)
        return [lasts, made.is_refused(KEY)]

    assert asyncio.run(refused()) == [True, False]


def test_the_time_of_an_earlier_refusal_does_not_end_a_later_one():
    async def refused() -> bool:
        made = planner(0.0, HOUR_SECONDS)
        refuse(made)
        made.forgive(KEY)  # the object changed
        refuse(made)
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert asyncio.run(refused())


def test_nor_does_that_of_an_object_that_is_gone():
    async def refused() -> bool:
        made = planner(0.0, HOUR_SECONDS)
        refuse(made)
        made.forget(KEY)
        refuse(made)  # another one of its name
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert asyncio.run(refused())


def test_one_that_ends_while_a_pass_goes_on_lasts_until_the_next_pass():
    """Else the workload would be looked at without a decision, which counts as a success: its next
    refusal would be tried again as soon as its first."""
    decides, may_end = threading.Event(), threading.Event()

    def decide(observed: Observed) -> Decisions:
        decides.set()
        may_end.wait(HOUR_SECONDS)
        return Decisions((), {})

    async def told() -> list[object]:
        queue = Recorded()
        queue.backoff_seconds = lambda key: HOUR_SECONDS  # type: ignore[method-assign]
        made = Planner(Cache(), queue, decide, lambda *_: (), Settings(), Metrics())
        may_end.set()
        refuse(made)
        await made.plan()
        queue.added.clear()
        decides.clear()
        may_end.clear()
        under_way = asyncio.create_task(made.plan())
        await asyncio.to_thread(decides.wait, HOUR_SECONDS)
        made.forgive(KEY)
        may_end.set()
        await under_way
        during = [made.is_refused(KEY), KEY in made.decisions.outcomes, list(queue.added)]
        await made.plan()
        return [*during, made.is_refused(KEY), KEY in made.decisions.outcomes, queue.added]

    assert asyncio.run(told()) == [True, True, [], False, False, [KEY]]


def test_nothing_is_kept_of_a_refusal_whose_workload_is_gone():
    async def kept() -> bool:
        made = planner(HOUR_SECONDS)
        refuse(made)
        await made.plan()
        made.forget(KEY)
        return made.is_refused(KEY)

    assert not asyncio.run(kept())


class Recorded(WorkQueue[Target]):
    """Notes what is to be looked at."""

    def __init__(self) -> None:
        super().__init__(1.0, 1.0, lambda: 1.0)
        self.added: list[Target] = []

    def add(self, key: Target) -> None:
        self.added.append(key)


def looked_at(*passes: Decisions) -> list[set[Target]]:
    """In each pass, what was looked at."""
    answers, queue = iter(passes), Recorded()
    made = Planner(
        Cache(),
        queue,
        lambda observed: next(answers),
        lambda plan, decisions: (),
        Settings(),
        Metrics(),
    )

    async def found() -> list[set[Target]]:
        told = []
        for _ in passes:
            queue.added.clear()
            await made.plan()
            told.append(set(queue.added))
        return told

    return asyncio.run(found())


@pytest.mark.parametrize("price", [Price(5.0, "USD", "spec.price"), None])
def test_what_runs_on_a_pool_hears_of_its_price_at_once(price):
    """Nothing is decided anew by it, and sums at the old price would be told until the resync."""
    here = placed_job()
    pool = replace(h100_pool(), name=_pool_of(here), price=Price(20.0, "USD", "spec.price"))
    other = replace(pool, name="other")
    outcomes = {here.key: here}
    _, at_once, elsewhere, never = looked_at(
        Decisions((pool, other), outcomes),
        Decisions((replace(pool, price=price), other), outcomes),
        Decisions((replace(pool, price=price), replace(other, price=price)), outcomes),
        Decisions((replace(pool, price=price), replace(other, price=price)), outcomes),
    )
    assert at_once == {here.key, pool.name}
    assert (elsewhere, never) == ({"other"}, set())


@pytest.mark.parametrize(
    "change", [{"tolerations": ({"key": "team", "operator": "Exists"},)}, {"node_selector": {}}]
)
def test_what_runs_on_a_pool_hears_at_once_how_its_nodes_are_reached(change):
    """The pods of a service follow, and not only with the resync."""
    here = placed_job()
    pool = replace(h100_pool(), name=_pool_of(here))
    altered = replace(pool, **change)
    _, at_once, never = looked_at(
        *(Decisions((each,), {here.key: here}) for each in (pool, altered, altered))
    )
    assert at_once == {here.key, pool.name}
    assert never == set()


def test_what_runs_on_a_pool_hears_at_once_that_it_is_gone_and_that_it_is_back():
    here = placed_job()
    pool, outcomes = replace(h100_pool(), name=_pool_of(here)), {here.key: here}
    there, gone = Decisions((pool,), outcomes), Decisions((), outcomes)
    first, went, came = looked_at(there, gone, there)
    assert first == went == came == {here.key, pool.name}


def test_another_node_of_its_pool_is_no_news_to_what_runs_there():
    here = placed_job()
    pool = replace(h100_pool(), name=_pool_of(here))
    smaller = replace(pool, nodes=pool.nodes[:-1])
    _, found = looked_at(*(Decisions((each,), {here.key: here}) for each in (pool, smaller)))
    assert found == {pool.name}


def test_a_place_that_is_given_while_an_earlier_one_is_given_up_counts():
    """The pods of a start that took too long are deleted one after the other, and a pass between
    two of these writes decides where it goes next."""
    given_up, next_one = placed_job(), placed_job({"a3-7": 8})
    child = {**job(), "metadata": {"name": "next", "namespace": "a"}}
    cache = Cache()

    async def counted() -> list[int]:
        decided = Decisions((), {next_one.key: next_one})
        made = Planner(
            cache, Recorded(), lambda _: decided, lambda *_: (child,), Settings(), Metrics()
        )
        await made.plan()
        found = []
        for each in (given_up, next_one):
            made.settle(each)
            found.append(len(cache.observed().children))
        return found

    assert asyncio.run(counted()) == [1, 0]


def _pool_of(plan: Plan) -> str:
    assert plan.chosen is not None
    return plan.chosen.pool


def test_what_kueue_is_to_hear_is_written_as_soon_as_it_is_another():
    waits, ready = (CheckAnswer("check", state, "") for state in ("Retry", "Ready"))
    told = looked_at(
        *(Decisions((), {}, answers={("a", "w"): each}) for each in (waits, waits, ready))
    )
    assert told == [{KueueObject("a", "w")}, set(), {KueueObject("a", "w")}]


def test_what_a_pass_that_failed_was_to_look_at_the_next_one_does():
    queue, failures = Recorded(), [ValueError("no")]

    def decide(observed: Observed) -> Decisions:
        if failures:
            raise failures[0]
        return Decisions((), {})

    made = Planner(Cache(), queue, decide, lambda plan, decisions: (), Settings(), Metrics())

    async def two_passes() -> None:
        made.want(KEY)
        with pytest.raises(ValueError, match="no"):
            await made.plan()
        assert not made.is_planning
        failures.clear()
        await made.plan()

    asyncio.run(two_passes())
    assert queue.added == [KEY]


class Announced(Recorded):
    """Says when something is to be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.came = asyncio.Event()

    def add(self, key: Target) -> None:
        super().add(key)
        self.came.set()


def test_a_pass_that_breaks_is_counted_and_made_again_later(monkeypatch):
    rests, failures, metrics, rest = list[float](), [ValueError("no")], Metrics(), asyncio.sleep

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        await rest(0)

    def decide(observed: Observed) -> Decisions:
        if failures:
            raise failures.pop()
        return Decisions((), {})

    limit_seconds = Settings().retry_limit_seconds

    async def play() -> None:
        queue, loop = Announced(), asyncio.get_running_loop()
        real_time = loop.time
        monkeypatch.setattr(loop, "time", lambda: real_time() + sum(rests))
        made = Planner(Cache(), queue, decide, lambda plan, decisions: (), Settings(), metrics)
        made.want(KEY)
        running = asyncio.create_task(made.run())
        async with asyncio.timeout(10 + 3 * limit_seconds):
            await queue.came.wait()
        running.cancel()

    monkeypatch.setattr("poolwise.handlers.planner.asyncio.sleep", sleep)
    asyncio.run(play())
    assert metrics.registry.get_sample_value(
        "poolwise_reconcile_failures_total", {"kind": "Plan", "error": "InternalError"}
    )
    assert [each for each in rests if each >= limit_seconds] == [limit_seconds]


def test_what_a_pass_leaves_to_the_next_outlasts_the_search_for_who_is_at_fault():
    """The planner is asked about each workload alone then, which leaves nothing of the others."""
    seen: list[frozenset[str]] = []

    def leaves_who_is_there(observed: Observed) -> Decisions:
        names = frozenset(each["metadata"]["name"] for each in observed.training_jobs)
        seen.append(observed.standing.vacated)
        if "bad" in names:
            raise ZeroDivisionError("division by zero")
        return Decisions((), {}, standing=Standing(vacated=names))

    async def run() -> None:
        cache = Cache()
        made = Planner(
            cache,
            Backoff(()),
            leaves_who_is_there,
            lambda plan, decisions: (),
            Settings(),
            Metrics(),
        )
        for name in ("bad", "good", "fine"):
            resource = training_job("a", name, 8)
            resource["metadata"] |= {"uid": name, "resourceVersion": "1"}
            cache.stores[TRAINING_JOBS].put(resource)
        for _ in range(2):
            await made.plan()

    asyncio.run(run())
    first, second = seen[: len(seen) - 2], seen[-2:]
    assert first == [frozenset()] * 5  # all, each alone, and those without the one at fault
    assert second == [frozenset({"good", "fine"})] * 2
