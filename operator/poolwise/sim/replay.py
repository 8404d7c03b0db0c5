"""The clock: arrivals, ends, and what a policy answers to them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job, Moves, Policy, Run, Scene, Truth, Waiting
from poolwise.sim.outcome import Finished, Outcome

_ARRIVAL, _END, _WAKE = range(3)


class Stuck(Exception):
    """A policy leaves jobs waiting for ever: nothing runs, and nothing more arrives."""


def replay(
    jobs: Iterable[Job],
    pools: Sequence[Pool],
    truth: Truth,
    policy: Policy,
    restart_seconds: float = 0.0,
) -> Outcome:
    """Run all jobs to their end. ``restart_seconds`` pass before a stopped job gets on.

    Raises :class:`Stuck`, and ValueError where a policy gives what is not free.
    """
    return _Replay(pools, truth, policy, restart_seconds).run(list(jobs))


@dataclass(slots=True)
class _Story:
    """What became of one job until now."""

    job: Job
    done: float = 0.0
    first_start_seconds: float = math.nan
    accelerator_seconds: float = 0.0
    cost: float = 0.0
    stops: int = 0


class _Replay:
    def __init__(
        self, pools: Sequence[Pool], truth: Truth, policy: Policy, restart_seconds: float
    ) -> None:
        self._pools = pools
        self._prices = {pool.name: pool.price_per_accelerator_hour for pool in pools}
        self._truth, self._policy, self._restart_seconds = truth, policy, restart_seconds
        self._room = Room(pools)
        self._stories: dict[str, _Story] = {}
        self._waiting: dict[str, Waiting] = {}
        self._running: dict[str, Run] = {}
        self._finished: list[Finished] = []
        self._events: list[tuple[float, int, str]] = []

    def run(self, jobs: list[Job]) -> Outcome:
        self._stories = {job.name: _Story(job) for job in jobs}
        self._events = [(job.arrival_seconds, _ARRIVAL, job.name) for job in jobs]
        heapq.heapify(self._events)
        while self._events:
            now = self._events[0][0]
            if self._happened(now):
                self._ask(now)
        if self._waiting:
            raise Stuck(
                f"{len(self._waiting)} jobs wait for ever, first {next(iter(self._waiting))}"
            )
        return Outcome(tuple(self._finished), sum(pool.accelerators for pool in self._pools))

    def _happened(self, now: float) -> bool:
        """Take all events of this moment; whether any of them is news."""
        is_news = False
        while self._events and self._events[0][0] <= now:
            moment, kind, name = heapq.heappop(self._events)
            if kind == _ARRIVAL:
                self._waiting[name] = Waiting(self._stories[name].job)
            elif kind == _END:
                run = self._running.get(name)
                if run is None or run.ends_seconds != moment:
                    continue
                self._leave(name, now)
                self._finish(name, now)
            elif not self._waiting and not self._running:
                continue
            is_news = True
        return is_news

    def _ask(self, now: float) -> None:
        waiting = tuple(self._waiting.values())
        scene = Scene(now, self._pools, waiting, dict(self._running), self._room.copy())
        self._apply(self._policy(scene), now)

    def _apply(self, moves: Moves, now: float) -> None:
        for name in moves.stops:
            self._leave(name, now)
            story = self._stories[name]
            story.stops += 1
            self._waiting[name] = Waiting(story.job, story.done)
        if moves.stops:
            by_arrival = sorted(self._waiting.items(), key=lambda item: item[1].job.arrival_seconds)
            self._waiting = dict(by_arrival)
        for name, placement in moves.starts:
            self._start(name, placement, now)
        if moves.wake_seconds is not None and moves.wake_seconds > now:
            heapq.heappush(self._events, (moves.wake_seconds, _WAKE, ""))

    def _start(self, name: str, placement: Placement, now: float) -> None:
        story, waiting = self._stories[name], self._waiting.pop(name)
        if placement.accelerators != story.job.accelerators:
            raise ValueError(f"{name} needs {story.job.accelerators}, got {placement.accelerators}")
        self._room.take(placement)
        ready = now + (self._restart_seconds if story.stops else 0.0)
        whole = self._truth(story.job, placement)
        run = Run(story.job, placement, now, ready, waiting.done, whole)
        if math.isnan(story.first_start_seconds):
            story.first_start_seconds = now
        self._running[name] = run
        if math.isfinite(run.ends_seconds):
            heapq.heappush(self._events, (run.ends_seconds, _END, name))

    def _leave(self, name: str, now: float) -> None:
        run, story = self._running.pop(name), self._stories[name]
        self._room.give(run.placement)
        held = (now - run.started_seconds) * run.job.accelerators
        story.done = run.done_at(now)
        story.accelerator_seconds += held
        story.cost += held / 3600.0 * self._prices[run.placement.pool]

    def _finish(self, name: str, now: float) -> None:
        story = self._stories[name]
        self._finished.append(
            Finished(
                story.job,
                story.first_start_seconds,
                now,
                story.accelerator_seconds,
                story.cost,
                story.stops,
            )
        )
