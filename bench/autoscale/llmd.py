"""``python -m bench.autoscale.llmd [--json] [--stages R,R,...]``: llm-d's slo-aware protocol.

Qwen3-32B on two H100s a replica, three to eight replicas, prompts of about 4,000 tokens and answers
of about 1,000, constant rates in stages, TTFT 3 s and TPOT 100 ms, starts of 100 to 105 s, scrapes
every 5 s, and their scoring: one less the violations of both targets over the requests (who
violates both counts twice), against the mean of the replicas asked for from the first request until
the fleet is back at its floor. llm-d's own law is replayed first and compared with what they
published; then ours. Arrivals are those of inference-perf's constant load: random gaps that fill
the stage exactly. Stages follow one another at once; inference-perf waits between them until
every answer is there, as ``--waits`` does. A replica is what llm-d measured of its own
(:mod:`bench.autoscale.llmd_engine`); ``--modelled`` takes the shipped model's.
Source: ``llm-d:guides/workload-autoscaling/slo-aware/benchmark-templates/``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.autoscale import llmd_engine, oracles, ours, sizing, suite
from bench.autoscale.engine import Engine
from bench.autoscale.episode import Episode, Score, durations, requests, run, waited_seconds
from bench.autoscale.numbers import count, count_or_none
from bench.autoscale.outcome import Outcome
from bench.autoscale.policies.llmd_slo import LlmdSlo
from bench.autoscale.policies.profiling import service
from bench.autoscale.policies.static import Static
from bench.autoscale.policy import Policy
from bench.autoscale.scene import Scene, Scraping
from bench.autoscale.traces import Trace

STAGES_PER_SECOND = (2.0, 4.0, 6.0, 8.0, 10.0, 4.0, 1.0)
PUBLISHED = {"attainment": 0.958, "average_replicas": 5.93}
PUBLISHED_COLD = {"attainment": 0.856}
"""With a predictor of latency that has not learned yet."""
LEAST, MOST = 3, 8
START_SECONDS = (100.0, 105.0)
SCRAPE_SECONDS = 5.0
TARGETS = sizing.Targets(ttft_seconds=3.0, tpot_seconds=0.1)


@dataclass(frozen=True)
class Scored:
    """A policy over all episodes."""

    name: str
    scores: tuple[Score, ...]

    def mean(self, field: str) -> float:
        """Of one figure."""
        return statistics.fmean(getattr(each, field) for each in self.scores)


def main() -> int:
    """2 for stages that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.autoscale.llmd",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--stages", type=rates, default=STAGES_PER_SECOND, metavar="R,R,...")
    parser.add_argument("--seed", type=count_or_none, default=0)
    parser.add_argument("--episodes", type=count, default=1, help="with seeds one after the other")
    parser.add_argument(
        "--permutations", type=count_or_none, default=0, help="further orders of the stages"
    )
    parser.add_argument("--waits", action="store_true", help="each stage waits for its answers")
    parser.add_argument(
        "--modelled", action="store_true", help="replicas as the shipped model has them"
    )
    parser.add_argument("--policies", nargs="*", choices=POLICIES, help="only these")
    asked = parser.parse_args()
    orders = [asked.stages, *permuted(asked.stages, asked.permutations, asked.seed)]
    seeds = range(asked.seed, asked.seed + asked.episodes)
    setup = Setup(asked.waits, asked.modelled)
    found = [(order, scored(order, seeds, asked.policies, setup)) for order in orders]
    print(json.dumps(document(found, asked.seed, setup)) if asked.json else text(found))
    return 0


def rates(text: str) -> tuple[float, ...]:
    """Of ``--stages``; argparse tells what is wrong."""
    try:
        found = tuple(float(each) for each in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers like 2,4,6") from error
    if not all(0.0 < rate < 1000.0 for rate in found):
        raise argparse.ArgumentTypeError(f"a rate must be between 0 and 1000/s, got {text}")
    if not any(
        int(rate * seconds) for rate, seconds in zip(found, durations(len(found)), strict=True)
    ):
        raise argparse.ArgumentTypeError(f"no stage of {text}/s is long enough for one request")
    return found


def permuted(stages: Sequence[float], count: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Other orders of the same stages."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        yield tuple(float(each) for each in draw.permutation(stages))


@dataclass(frozen=True, slots=True)
class Setup:
    """What is replayed, beside the stages."""

    waits: bool = False
    """Each stage for the answers of the one before."""
    is_modelled: bool = False
    """Replicas as the shipped model has them, not as llm-d measured them."""

    @property
    def engine(self) -> Engine:
        """Of a replica."""
        return llmd_engine.modelled() if self.is_modelled else llmd_engine.measured()


USUAL = Setup()


def episode(
    stages: Sequence[float],
    seed: int,
    waits_seconds: Sequence[float] = (),
    initial: int = LEAST,
    setup: Setup = USUAL,
) -> Episode:
    """One run's requests before one fleet."""
    arriving = requests(stages, seed, waits_seconds)
    scene = Scene(
        Trace("llmd", arriving),
        setup.engine,
        TARGETS,
        _work(setup.engine),
        start_delay_seconds=statistics.fmean(START_SECONDS),
        scraping=Scraping(SCRAPE_SECONDS, noise=0.0),
        warm_up_seconds=0.0,
        least_replicas=LEAST,
        most_replicas=MOST,
        initial_replicas=initial,
        seed=seed,
    )
    return Episode(scene, START_SECONDS)


@cache
def _work(on: Engine) -> sizing.Work:
    return sizing.measured(on, requests(STAGES_PER_SECOND, 0, ()), TARGETS)


def _llmd(scene: Scene) -> Policy:
    return LlmdSlo(service(scene))


STATIC = "static_8"
POLICIES: dict[str, Callable[[Scene], Policy]] = {
    "llmd_slo": _llmd,
    suite.OURS: ours.policy,
    STATIC: lambda scene: Static(MOST),
}
O1 = suite.O1


def scored(
    stages: Sequence[float],
    seeds: Sequence[int],
    names: Sequence[str] | None,
    setup: Setup = USUAL,
) -> list[Scored]:
    """Every policy that is there on the same episodes; without ``names`` the oracle too."""
    return [scored_one(name, stages, seeds, setup) for name in names or (*POLICIES, O1)]


def scored_one(
    name: str, stages: Sequence[float], seeds: Sequence[int], setup: Setup = USUAL
) -> Scored:
    """One policy, or the oracle, which is searched for on the first episode alone."""
    if name == O1:
        return Scored(O1, (_clairvoyant(stages, seeds[0], setup),))
    return Scored(name, tuple(_score(name, stages, seed, setup) for seed in seeds))


def _score(name: str, stages: Sequence[float], seed: int, setup: Setup) -> Score:
    """Waits depend on the policy itself: each is found when those before it hold still."""
    gaps: list[float] = []
    initial = MOST if name == STATIC else LEAST
    while True:
        each = episode(stages, seed, gaps, initial, setup)
        score, answers = run(each, POLICIES[name](each.scene))
        if not setup.waits or len(gaps) == len(stages) - 1:
            return score
        gaps.append(waited_seconds(each.scene, answers, stages, len(gaps), gaps))


def _clairvoyant(stages: Sequence[float], seed: int, setup: Setup) -> Score:
    """O1 of :mod:`bench.autoscale.oracles`, by their scoring."""
    each = episode(stages, seed, setup=setup)
    scores: dict[str, Score] = {}

    def play(policy: Policy) -> Outcome:
        score, outcome = each.played(policy)
        scores[outcome.digest + str(outcome.replica_hours)] = score
        return outcome

    best = oracles.clairvoyant(each.scene, play)
    return scores[best.digest + str(best.replica_hours)]


def document(
    found: Sequence[tuple[Sequence[float], list[Scored]]], seed: int, setup: Setup = USUAL
) -> dict[str, Any]:
    """What ``--json`` prints; ``permutations`` holds the further orders."""
    orders = [_order(stages, results) for stages, results in found]
    return {
        **orders[0],
        "seed": seed,
        "engine": "modelled" if setup.is_modelled else "measured",
        "published": {
            **PUBLISHED,
            "attainment_with_a_cold_predictor": PUBLISHED_COLD["attainment"],
        },
        "permutations": orders[1:],
    }


def _order(stages: Sequence[float], results: list[Scored]) -> dict[str, Any]:
    policies = {each.name: _means(each) for each in results}
    own = policies.get("llmd_slo")
    gap = {key: own[key] - value for key, value in PUBLISHED.items()} if own else None
    return {"stages": list(stages), "policies": policies, "gap_to_published": gap}


def _means(each: Scored) -> dict[str, float]:
    return {field: each.mean(field) for field in asdict(each.scores[0])}


def text(found: Sequence[tuple[Sequence[float], list[Scored]]]) -> str:
    """A table in Markdown for each order of the stages."""
    return "\n\n".join(_table(stages, results) for stages, results in found)


def _table(stages: Sequence[float], results: list[Scored]) -> str:
    return table(stages, map(row, results))


def table(stages: Sequence[float], rows: Iterable[str]) -> str:
    """Of one order of the stages."""
    lines = [
        f"Stages {', '.join(f'{rate:g}' for rate in stages)} requests/s",
        "",
        "| policy | attainment % | both met % | TTFT missed | TPOT missed | average replicas "
        "| paid for | p99 TTFT s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *rows])


def row(each: Scored) -> str:
    """Of one policy."""
    return (
        f"| {each.name} | {100 * each.mean('attainment'):.2f} | {100 * each.mean('joint'):.2f} "
        f"| {each.mean('ttft_violations'):.0f} | {each.mean('tpot_violations'):.0f} "
        f"| {each.mean('average_replicas'):.2f} | {each.mean('average_paid_replicas'):.2f} "
        f"| {each.mean('p99_ttft_seconds'):.2f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
