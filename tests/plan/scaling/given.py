"""Services and looks for the tests: a fleet as a fluid, that tells what engines tell."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from poolwise import tables
from poolwise.model.calibration import shipped
from poolwise.model.presets import model
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target, Tokens
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.service import Modelled, Pool, Service
from poolwise.plan.signals.sample import Histogram, Sample
from tests.plan.machines import machine

STEP_SECONDS = 15.0
PROMPT_TOKENS, ANSWER_TOKENS = 500.0, 200.0
GAP_SECONDS = 0.03
BOUNDS = (0.05, 0.1, 1.0, 5.0, 100.0, 1000.0, math.inf)


@functools.cache
def predictor(accelerator: str = "H100-SXM5-80GB") -> Modelled:
    """Llama 3.1 8B on one accelerator."""
    known = tables.load()
    row = known.model("llama-3.1-8b")
    assert row is not None
    work = ServingWork(model(row), None, Tokens(400.0, 1200.0), Tokens(180.0, 400.0), 0.0, None, ())
    layout = ServingLayout(max_batched_tokens=8192, max_num_seqs=256)
    return Modelled(work, layout, machine(accelerator), shipped(known))


def target(seconds: float = 2.0, percentile: float = 99.0) -> Target:
    """Of the first token."""
    return Target(Metric.TTFT, percentile, seconds)


def service(**changes: object) -> Service:
    """One pool, 1 to 20 replicas, starts of a minute."""
    told = Service(
        "chat",
        (target(), Target(Metric.TPOT, 99.0, 0.1)),
        (Pool("h100", predictor(), 60.0, 10.0),),
        least_replicas=1,
        most_replicas=20,
    )
    return replace(told, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fleet:
    """Replicas that share arrivals evenly and are never late unless told so."""

    pools: tuple[str, ...]
    counts: tuple[float, ...]
    """Requests that each has finished."""
    late: tuple[float, ...]

    @staticmethod
    def of(replicas: int, pool: str = "h100") -> Fleet:
        """All new."""
        return Fleet((pool,) * replicas, (0.0,) * replicas, (0.0,) * replicas)

    def after(self, requests: float, late_share: float = 0.0) -> Fleet:
        """So many came to all of them together."""
        each = requests / max(len(self.counts), 1)
        return Fleet(
            self.pools,
            tuple(count + each for count in self.counts),
            tuple(late + each * late_share for late in self.late),
        )

    def resized(self, by_pool: dict[str, int]) -> Fleet:
        """With this many of each pool; those that stay keep their counts."""
        kept: list[tuple[str, float, float]] = []
        for pool, count in by_pool.items():
            there = [
                each for each in zip(self.pools, self.counts, self.late, strict=True)
                if each[0] == pool
            ]  # fmt: skip
            kept += (there + [(pool, 0.0, 0.0)] * count)[:count]
        if not kept:
            return Fleet((), (), ())
        pools, counts, late = zip(*kept, strict=True)
        return Fleet(pools, counts, late)

    def seen(self, now_seconds: float, rate: float, skipped: Iterable[int] = ()) -> Seen:
        """A look at it."""
        names = [f"{pool}-{index}" for index, pool in enumerate(self.pools)]
        replicas = tuple(
            ReplicaSeen(name, pool, Phase.READY, -1000.0, -900.0)
            for name, pool in zip(names, self.pools, strict=True)
        )
        running = rate / max(len(names), 1) * ANSWER_TOKENS * GAP_SECONDS
        samples = {
            name: sample(name, now_seconds, self.counts[index], self.late[index], running)
            for index, name in enumerate(names)
            if index not in set(skipped)
        }
        return Seen(now_seconds, replicas, samples)


def sample(
    name: str, now_seconds: float, count: float, late: float = 0.0, running: float = 0.0
) -> Sample:
    """What an engine tells that has answered so many requests."""
    timely = count - late
    return Sample(
        name,
        now_seconds,
        running=running,
        waiting=0.0,
        kv_cache_usage=min(running / 400.0, 1.0),
        finished_requests=count,
        preemptions=0.0,
        prompt_tokens=count * PROMPT_TOKENS,
        begun_prompt_tokens=count * PROMPT_TOKENS,
        cached_prompt_tokens=0.0,
        generated_tokens=count * ANSWER_TOKENS,
        ttft_seconds=Histogram(
            BOUNDS, (timely, timely, timely, timely, count, count, count), count
        ),
        inter_token_seconds=_all_at(count * ANSWER_TOKENS, GAP_SECONDS),
        tpot_seconds=_all_at(count, GAP_SECONDS),
        prompt_lengths_tokens=_all_at(count, PROMPT_TOKENS),
        answer_lengths_tokens=_all_at(count, ANSWER_TOKENS),
    )


def _all_at(count: float, value: float) -> Histogram:
    return Histogram(
        BOUNDS, tuple(count if bound >= value else 0.0 for bound in BOUNDS), count * value
    )


@dataclass(frozen=True)
class Course:
    """Where a service stands after some looks."""

    fleet: Fleet
    memory: Memory
    now_seconds: float
    decision: Decision


def course(
    told: Service, rates: Iterable[float], replicas: int = 4, late_share: float = 0.0
) -> Course:
    """Look after look at these rates; starts and drains take no time here."""
    fleet, memory, now = Fleet.of(replicas, told.pools[0].name), Memory(), 0.0
    decision = decide(told, memory, fleet.seen(now, 0.0))
    memory = decision.memory
    for rate in rates:
        now += STEP_SECONDS
        fleet = fleet.after(rate * STEP_SECONDS, late_share)
        decision = decide(told, memory, fleet.seen(now, rate))
        memory, fleet = decision.memory, fleet.resized(dict(decision.by_pool))
    return Course(fleet, memory, now, decision)
