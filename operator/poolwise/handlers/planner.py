"""One planning pass at a time over the whole cluster, for any number of events.

All placements come out of one pass and one ledger. What a pass has placed counts for the next one
at once, before the API server has seen it (:meth:`Cache.expect`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.queue import WorkQueue
from poolwise.cluster.resources import ADMISSION_CHECKS, QUEUED, Resource, resource_of
from poolwise.cluster.store import name_of
from poolwise.cluster.under_way import UnderWay
from poolwise.handlers.isolation import Decide, decide_or_isolate, without
from poolwise.plan.children.metadata import key_of
from poolwise.plan.children.resizing import grown
from poolwise.plan.decision import Key, Kind, Outcome, Plan
from poolwise.plan.names import overflow_name
from poolwise.plan.observed import Decisions, Object, Observed
from poolwise.plan.pool import Pool
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_PASS = "pass"


@dataclass(frozen=True, slots=True)
class KueueObject:
    """A Workload of Kueue, or without a namespace an AdmissionCheck of ours."""

    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """Of its object."""
        return QUEUED.kind if self.namespace else ADMISSION_CHECKS.kind

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


Target = Key | str | KueueObject
"""A workload, the name of a pool, or what Kueue asks."""

MakeChildren = Callable[[Plan, Decisions], tuple[Object, ...]]
"""Manifests of a placed plan; none when its pool or its workload is gone."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A plan that could not be carried out."""

    outcome: Outcome
    """What became of it."""
    pardon: asyncio.TimerHandle | None
    """When it is planned again, if nothing asks for it before; None: never."""


class Planner:
    """Turns wishes for a look into passes, and passes into work."""

    def __init__(
        self,
        cache: Cache,
        queue: WorkQueue[Target],
        decide: Decide,
        children: MakeChildren,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._decide = decide
        self._children = children
        self._settings = settings
        self._metrics = metrics
        self._wanted = asyncio.Event()
        self._touched: set[Target] = set()
        self._fresh: dict[Key, Plan] = {}
        """Placements whose story is not in the status yet."""
        self._expected: dict[Key, list[tuple[Resource, tuple[str | None, str]]]] = {}
        self._refusals: dict[Key, _Refusal] = {}
        """Of plans that could not be carried out."""
        self._left_out: dict[Key, Outcome] = {}
        """What became of those that the newest answer was made without."""
        self._due: asyncio.TimerHandle | None = None
        self.decisions = Decisions((), {})
        """The newest answer."""
        self.under_way: UnderWay[str] = UnderWay()
        """The pass."""

    def want(self, target: Target | None = None) -> None:
        """Plan again soon, and then look at ``target`` even if nothing was decided anew."""
        if target is not None:
            self._touched.add(target)
        self._wanted.set()

    @property
    def is_wanted(self) -> bool:
        """Whether a pass is due."""
        return self._wanted.is_set()

    @property
    def is_planning(self) -> bool:
        """Whether a pass is under way."""
        return _PASS in self.under_way

    def look_again(self, target: Target, seconds: float) -> None:
        """Work on ``target`` in a while, whatever happens until then; 0 is behind all others."""
        if seconds:
            self._queue.add_after(target, seconds)
        else:
            self._queue.add(target)

    def outcome_of(self, workload: Object) -> Outcome | None:
        """What was last decided for this very object, whatever its spec said then."""
        outcome = self.decisions.outcomes.get(key_of(workload))
        is_of_it = outcome is not None and outcome.uid == workload["metadata"]["uid"]
        return outcome if is_of_it else None

    def is_fresh(self, outcome: Outcome) -> bool:
        """Whether it is a placement that nobody was told of."""
        return self._fresh.get(outcome.key) == outcome

    def told(self, plan: Outcome) -> None:
        """The story of ``plan`` is in the status: from now on it is kept, not fresh."""
        if self._fresh.get(plan.key) == plan:
            del self._fresh[plan.key]

    def settle(self, outcome: Outcome) -> bool:
        """Stop counting children that are written by now, or that will not be; whether any was.

        Those of what was decided while ``outcome`` was carried out count on.
        """
        is_newest = self.decisions.outcomes.get(outcome.key, outcome) == outcome
        return is_newest and self._unexpect(outcome.key)

    def _unexpect(self, key: Key) -> bool:
        expected = self._expected.pop(key, ())
        return any([self._cache.unexpect(resource, name) for resource, name in expected])

    def refuse(self, outcome: Outcome, *, for_good: bool = False) -> None:
        """A plan cannot be carried out now: ``outcome`` says why, and others may have its place.

        It is planned again after a while, later with each refusal; ``for_good``: only another
        object of its name is.
        """
        key, pardon = outcome.key, None
        self.forget(key)
        self.want(key)
        if not for_good:
            delay_seconds = self._queue.backoff_seconds(key)
            pardon = asyncio.get_running_loop().call_later(delay_seconds, self.forgive, key)
        self._refusals[key] = _Refusal(outcome, pardon)
        # At once, and not with the next pass: that may give its place away while the plan that was
        # refused is tried once more.
        self.decisions = replace(self.decisions, outcomes={**self.decisions.outcomes, key: outcome})

    def forgive(self, key: Key) -> None:
        """Plan ``key`` again in spite of an earlier refusal, unless that is for good."""
        refusal = self._refusals.get(key)
        if refusal is not None and refusal.pardon is not None:
            self._pardon(key)
            self.want(key)

    def _pardon(self, key: Key) -> None:
        """End a refusal, with its timer."""
        refusal = self._refusals.pop(key, None)
        if refusal is not None and refusal.pardon is not None:
            refusal.pardon.cancel()

    def is_refused(self, key: Key) -> bool:
        """Whether ``key`` waits for another attempt: for its time, or for the pass that plans it
        again."""
        return key in self._refusals or key in self._left_out

    def forget(self, key: Key) -> None:
        """The workload is gone."""
        self._pardon(key)
        self._left_out.pop(key, None)
        self._fresh.pop(key, None)
        self._unexpect(key)

    async def run(self) -> None:
        """Plan whenever it is wanted, for ever; no more than half of the time, however large the
        cluster."""
        loop = asyncio.get_running_loop()
        spent_seconds = 0.0
        while True:
            await self._wanted.wait()
            await asyncio.sleep(max(self._settings.debounce_seconds, spent_seconds))
            started = loop.time()
            is_planned = await self._plan_or_report()
            spent_seconds = loop.time() - started if is_planned else 0.0

    async def _plan_or_report(self) -> bool:
        """Whether the pass went well; after one that did not, rest."""
        try:
            await self.plan()
        except Exception:
            _log.exception("a planning pass failed; tried again later")
            self._metrics.failures.labels("Plan", "InternalError").inc()
            await asyncio.sleep(self._settings.retry_limit_seconds)
            self._wanted.set()
            return False
        return True

    async def plan(self) -> None:
        """One pass: observe, decide, and hand on what is new."""
        self._wanted.clear()
        touched, self._touched = self._touched, set()
        try:
            with self._metrics.plan_seconds.time(), self.under_way.during(_PASS):
                left_out = {key: refusal.outcome for key, refusal in self._refusals.items()}
                observed, known = self._observed(left_out), self._planned()
                decisions = await asyncio.to_thread(
                    decide_or_isolate, self._decide, observed, known
                )
        except Exception:
            self._touched |= touched
            raise
        decisions = replace(
            decisions, apis=observed.apis, training_runtimes=observed.training_runtimes
        )
        before, self.decisions = self.decisions, self._amended(decisions, left_out)
        changed = _changed(before, self.decisions)
        for target in changed:
            if isinstance(target, Key):
                self._expect(self.decisions.outcomes.get(target))
        for target in sorted(touched | changed | _beside(before, self.decisions), key=str):
            self._queue.add(target)
        self._plan_at(self.decisions.look_again_at)

    def _observed(self, left_out: Mapping[Key, Outcome]) -> Observed:
        """What there is, and what the newest answer left to the next."""
        seen = without(self._cache.observed(), left_out)
        return replace(seen, standing=self.decisions.standing)

    def _planned(self) -> Mapping[Key, Outcome]:
        """What the planner itself said the last time."""
        outcomes = self.decisions.outcomes.items()
        return {key: each for key, each in outcomes if not self.is_refused(key)}

    def _plan_at(self, moment: datetime | None) -> None:
        """A pass is due at a moment at which time alone changes a decision."""
        if self._due is not None:
            self._due.cancel()
        if moment is not None:
            seconds = (moment - clock.utc_now()).total_seconds()
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(max(0.0, seconds), self._wanted.set)

    def _amended(self, decisions: Decisions, left_out: Mapping[Key, Outcome]) -> Decisions:
        """With what the planner cannot know: refusals, and stories that are still to be told.

        A refusal that ended while the pass went on stands until the next one.
        """
        fresh = {
            key: plan
            for key, plan in self._fresh.items()
            if isinstance(kept := decisions.outcomes.get(key), Plan)
            and kept.kept
            and (kept.uid, kept.generation) == (plan.uid, plan.generation)
        }
        refused = {key: refusal.outcome for key, refusal in self._refusals.items()}
        self._left_out = {**left_out, **refused}
        return replace(decisions, outcomes={**decisions.outcomes, **fresh, **self._left_out})

    def _expect(self, outcome: Outcome | None) -> None:
        if not isinstance(outcome, Plan):
            return
        if outcome.is_new:
            self._fresh[outcome.key] = outcome
            children = self._children_of(outcome)
        elif not (children := self._grown(outcome)):
            return
        self._unexpect(outcome.key)
        self._expected[outcome.key] = [(resource_of(each), name_of(each)) for each in children]
        for child in children:
            self._cache.expect(resource_of(child), child)

    def _grown(self, plan: Plan) -> tuple[Object, ...]:
        """What is to run more replicas of a service that runs, here or on a further pool."""
        runs = plan.running
        if runs is None or plan.key.kind is not Kind.INFERENCE_SERVICE:
            return ()
        live = self._cache.children_of(plan.uid)
        there = {each["metadata"]["name"] for each in live}
        names = {overflow_name(plan.key.name, part.pool) for part in plan.parts if part.pool}
        made = self._children_of(plan) if names - there else ()
        added = (each for each in made if each["metadata"]["name"] in names - there)
        return (*grown(live, runs), *added)

    def _children_of(self, plan: Plan) -> tuple[Object, ...]:
        try:
            return self._children(plan, self.decisions)
        except Exception as error:
            # The worker meets the same error, and tells of it where the user looks.
            _log.info("no children for a plan", workload=str(plan.key), error=str(error))
            return ()


def _changed(before: Decisions, after: Decisions) -> set[Target]:
    keys = before.outcomes.keys() | after.outcomes.keys()
    then, now = _pools(before), _pools(after)
    return {
        *(key for key in keys if before.outcomes.get(key) != after.outcomes.get(key)),
        *(name for name in then.keys() | now.keys() if then.get(name) != now.get(name)),
        *(
            KueueObject(*name)
            for name, answer in after.answers.items()
            if before.answers.get(name) != answer
        ),
    }


def _beside(before: Decisions, after: Decisions) -> set[Target]:
    """Workloads on pools that went, came back, or have another price or other ways to their nodes:
    nothing is decided anew, and what is told and written of them is another from now on."""
    then, now = ({pool.name: _facts(pool) for pool in each.pools} for each in (before, after))
    pools = {name for name in then.keys() | now.keys() if then.get(name) != now.get(name)}
    return {
        key
        for key, outcome in after.outcomes.items()
        if isinstance(outcome, Plan)
        and any(
            part.chosen and part.placed and part.chosen.pool in pools
            for part in (outcome, *outcome.parts, *filter(None, [outcome.goes_on_as]))
        )
    }


def _facts(pool: Pool) -> tuple[Any, ...]:
    """What status and children of that which runs on a pool take from it; nothing that changes with
    every node."""
    ways = pool.node_selector, pool.node_expressions, pool.tolerations, pool.link_level
    return pool.price, pool.price_problem, *ways


def _pools(decisions: Decisions) -> dict[str, tuple[Pool, int | None, tuple[str, ...]]]:
    free, idle = decisions.free_accelerators, decisions.idle_nodes
    return {
        pool.name: (pool, free.get(pool.name), idle.get(pool.name, ())) for pool in decisions.pools
    }
