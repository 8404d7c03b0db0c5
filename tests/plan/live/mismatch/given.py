"""A fleet of engines as a fluid, stage after stage, and what is told of it look by look."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poolwise.model.work import Metric, ServingLayout, Target
from poolwise.plan.live.mismatch.cache import CacheRoom
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.mismatch.detect import Circumstances, clues
from poolwise.plan.live.mismatch.history import History
from poolwise.plan.live.mismatch.watch import Watch
from poolwise.plan.live.overdue import Overdue
from poolwise.plan.scaling.seen import Phase, ReplicaSeen
from poolwise.plan.signals.sample import Histogram, Sample
from tests.plan.machines import machine

TTFT = Target(Metric.TTFT, 99, 2.5)
TPOT = Target(Metric.TPOT, 99, 0.1)
LOOK_SECONDS = 10.0
BEGIN_SECONDS = 1_000_000.0
BOUNDS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, math.inf)
TOKEN_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.5, math.inf)
LENGTH_BOUNDS = (128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, math.inf)
SIGMA = 0.7
_NONE = {
    each: Histogram(each, (0.0,) * len(each), 0.0) for each in (BOUNDS, TOKEN_BOUNDS, LENGTH_BOUNDS)
}


@dataclass(frozen=True)
class Stage:
    """Some minutes of the same."""

    minutes: float
    rate: float = 4.0
    """Requests per second of one replica."""
    ttft_seconds: float = 0.2
    """Median."""
    token_seconds: float = 0.02
    prompt_tokens: float = 500.0
    cache: float = 0.6
    waiting: float = 0.0
    """Requests of one replica."""
    preempted: float = 0.0
    """Times for each request."""
    replicas: tuple[str, ...] = ("a", "b", "c")
    is_short: bool = False
    cold_ttft_seconds: float = 0.2
    """Of a replica in its first minute."""


@dataclass
class _Engine:
    ready_at: float
    requests: float = 0.0
    preemptions: float = 0.0
    prompt_tokens: float = 0.0
    ttft: Histogram = _NONE[BOUNDS]
    tokens: Histogram = _NONE[TOKEN_BOUNDS]
    prompts: Histogram = _NONE[LENGTH_BOUNDS]

    def run(self, stage: Stage, count: float, is_cold: bool, chance: random.Random | None) -> None:
        median = stage.cold_ttft_seconds if is_cold else stage.ttft_seconds
        self.requests += count
        self.preemptions += count * stage.preempted
        self.prompt_tokens += count * stage.prompt_tokens
        self.ttft = _more(self.ttft, median, count, chance)
        self.tokens = _more(self.tokens, stage.token_seconds, count, chance, 0.2)
        self.prompts = _more(self.prompts, stage.prompt_tokens, count, chance)

    def sample(self, name: str, stage: Stage, now: float) -> Sample:
        return Sample(
            name,
            now,
            running=20.0,
            waiting=stage.waiting,
            kv_cache_usage=stage.cache,
            finished_requests=self.requests,
            preemptions=self.preemptions,
            prompt_tokens=self.prompt_tokens,
            cached_prompt_tokens=0.0,
            generated_tokens=self.requests * 200.0,
            ttft_seconds=self.ttft,
            tpot_seconds=self.tokens,
            prompt_lengths_tokens=self.prompts,
        )


def _more(
    before: Histogram, median: float, count: float, chance: random.Random | None, sigma=SIGMA
) -> Histogram:
    """Log-normal values; drawn one by one where chance is given."""
    normal = statistics.NormalDist(math.log(median), sigma)
    if chance is None:
        mean = median * math.exp(sigma**2 / 2.0)
        shares = [normal.cdf(math.log(b)) if math.isfinite(b) else 1.0 for b in before.upper_bounds]
        counts = [count * each for each in shares]
        total = count * mean
    else:
        values = [math.exp(chance.gauss(normal.mean, sigma)) for _ in range(round(count))]
        counts = [float(sum(v <= bound for v in values)) for bound in before.upper_bounds]
        total = sum(values)
    summed = tuple(a + b for a, b in zip(before.counts, counts, strict=True))
    assert before.total is not None
    return Histogram(before.upper_bounds, summed, before.total + total)


def room(accelerator: str = "H100-SXM5-80GB", **more: Any) -> CacheRoom:
    """One accelerator of eight."""
    layout = ServingLayout(max_num_seqs=256, max_model_tokens=8192)
    return replace(CacheRoom(layout, machine(accelerator).device, "vllm", 8, False), **more)


def known(**more: Any) -> Circumstances:
    """A service about which nothing else is remarkable."""
    usual = Circumstances((TTFT, TPOT), room(), 0.0, 0.3, Overdue())
    return replace(usual, **more)


@dataclass(frozen=True)
class Told:
    """What stands at one look."""

    seconds: float
    """Since the first look."""
    mismatches: tuple[Mismatch, ...]
    sentences: tuple[str, ...]


def play(
    stages: Iterable[Stage],
    about: Circumstances | None = None,
    chance: random.Random | None = None,
    watch: Watch | None = None,
) -> list[Told]:
    """What is told at each look."""
    history, watch, told = History(), watch or Watch(), []
    engines, now = dict[str, _Engine](), BEGIN_SECONDS
    for stage in stages:
        for _ in range(round(stage.minutes * 60.0 / LOOK_SECONDS)):
            engines = {name: engines.get(name) or _begun(now, engines) for name in stage.replicas}
            now += LOOK_SECONDS
            for each in engines.values():
                is_cold = now - each.ready_at <= 60.0
                each.run(stage, _count(stage.rate, chance), is_cold, chance)
            samples = {name: each.sample(name, stage, now) for name, each in engines.items()}
            seen = [_seen(name, each) for name, each in engines.items()]
            history = history.after(samples, seen, now, stage.is_short)
            watch = watch.after(clues(history, watch, about or known()), now)
            kinds, words = zip(*watch.told, strict=True) if watch.told else ((), ())
            told.append(Told(now - BEGIN_SECONDS, kinds, words))
    return told


def _count(rate: float, chance: random.Random | None) -> float:
    """Of requests between two looks."""
    mean = rate * LOOK_SECONDS
    return mean if chance is None else max(0.0, round(chance.gauss(mean, math.sqrt(mean))))


def _begun(now: float, others: dict[str, _Engine]) -> _Engine:
    """The first ones have been there for long."""
    return _Engine(now if others else now - 7200.0)


def _seen(name: str, engine: _Engine) -> ReplicaSeen:
    return ReplicaSeen(name, "h100", Phase.READY, engine.ready_at - 60.0, engine.ready_at)


def kinds(told: Sequence[Told]) -> set[Mismatch]:
    """All that stood at any look."""
    return {kind for each in told for kind in each.mismatches}


def changes(told: Sequence[Told]) -> int:
    """How often what stands changed."""
    sets = [(), *(each.mismatches for each in told)]
    return sum(before != after for before, after in itertools.pairwise(sets))
