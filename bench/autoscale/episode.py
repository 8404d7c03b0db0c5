"""One scored episode of llm-d's protocol: stages of requests, a fleet, and their score of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.autoscale.outcome import Outcome, Step, outcome
from bench.autoscale.policy import Policy
from bench.autoscale.replay import asked, router
from bench.autoscale.scene import Scene
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Answers, Requests

FIRST_SECONDS, MIDDLE_SECONDS, LAST_SECONDS = 330.0, 360.0, 300.0
"""Of the stages, by their place."""
INPUT_TOKENS = (4000.0, 300.0, 3500, 4500)
OUTPUT_TOKENS = (1000.0, 80.0, 900, 1100)
"""Mean, standard deviation, least and most."""
DRAINED_SECONDS = 1800.0
"""After the load; a fleet that is not back at its floor by then is scored until then."""


def durations(count: int) -> list[float]:
    """Seconds of each stage."""
    if count == 1:
        return [FIRST_SECONDS]
    return [FIRST_SECONDS, *[MIDDLE_SECONDS] * (count - 2), LAST_SECONDS]


def starts(count: int, waits_seconds: Sequence[float]) -> list[float]:
    """When each stage begins, with a wait after each of the first ones."""
    waits = [*waits_seconds, *[0.0] * (count - len(waits_seconds))]
    ends = np.cumsum(np.add(durations(count), waits))
    return [0.0, *ends.tolist()[:-1]]


def requests(stages: Sequence[float], seed: int, waits_seconds: Sequence[float]) -> Requests:
    """Of all stages; each has its own draws, so the ones before a change stay as they are."""
    arrivals, inputs, outputs = [], [], []
    begins = starts(len(stages), waits_seconds)
    for place, (rate, begin, seconds) in enumerate(
        zip(stages, begins, durations(len(stages)), strict=True)
    ):
        draw = np.random.default_rng((seed, place))
        gaps = draw.exponential(1.0, int(rate * seconds))
        arrivals.append(begin + np.cumsum(gaps) * seconds / gaps.sum())
        inputs.append(_lengths(draw, INPUT_TOKENS, len(gaps)))
        outputs.append(_lengths(draw, OUTPUT_TOKENS, len(gaps)))
    return Requests.of(np.concatenate(arrivals), np.concatenate(inputs), np.concatenate(outputs))


def _lengths(
    draw: np.random.Generator, shape: tuple[float, float, int, int], count: int
) -> np.ndarray:
    mean, deviation, least, most = shape
    return np.clip(draw.normal(mean, deviation, count), least, most).astype(np.int64)


def waited_seconds(
    scene: Scene, answers: Answers, stages: Sequence[float], place: int, waits: Sequence[float]
) -> float:
    """From the end of a stage until its last answer; 0 when that came before."""
    begin = starts(len(stages), waits)[place]
    end = begin + durations(len(stages))[place]
    arrivals = scene.trace.requests.arrival_seconds
    mine = (arrivals > begin) & (arrivals <= end)
    return max(float(np.nanmax(answers.finished_seconds[mine], initial=end)) - end, 0.0)


@dataclass(frozen=True, slots=True)
class Score:
    """As llm-d's ``plot_run.py`` computes it, and beside it."""

    attainment: float
    """One less both kinds of violations over the requests."""
    joint: float
    """Share of requests that met both."""
    ttft_violations: float
    tpot_violations: float
    requests: float
    average_replicas: float
    """Asked for, until the fleet is back at its floor."""
    average_paid_replicas: float
    """With those that drain, over the same time."""
    seconds: float
    p99_ttft_seconds: float


@dataclass(frozen=True)
class Episode:
    """A scene whose starts take a time drawn between two."""

    scene: Scene
    start_seconds: tuple[float, float]

    def played(self, policy: Policy) -> tuple[Score, Outcome]:
        """Score, and the outcome as a replay has it."""
        fleet, steps = driven(self, policy)
        return score(self.scene, fleet, steps), outcome(self.scene, fleet, steps)


def run(episode: Episode, policy: Policy) -> tuple[Score, Answers]:
    """Score, and what became of each request."""
    fleet, steps = driven(episode, policy)
    return score(episode.scene, fleet, steps), fleet.answers()


def driven(episode: Episode, policy: Policy) -> tuple[Fleet, list[Step]]:
    """The whole episode, until the fleet is back at its floor and has answered everything."""
    scene = episode.scene
    fleet = Fleet(scene.trace.requests, scene.engine.costs, scene.engine.limits, router(scene))
    fleet.request(scene.first_replicas, 0.0)
    draw = np.random.default_rng(scene.seed)
    steps = [Step(0.0, scene.first_replicas)]
    for wanted in asked(scene, policy, fleet, lambda _: not _is_over(scene, fleet)):
        for _ in range(wanted - fleet.wanted):
            fleet.request(1, float(draw.uniform(*episode.start_seconds)))
        fleet.drain(max(fleet.wanted - wanted, 0))
        steps.append(Step(fleet.now_seconds, wanted))
    fleet.finish()
    return fleet, steps


def _is_over(scene: Scene, fleet: Fleet) -> bool:
    after = fleet.now_seconds - scene.trace.seconds
    is_back = fleet.is_done and fleet.wanted <= scene.least_replicas
    return after > 0.0 and (is_back or after > DRAINED_SECONDS)


def score(scene: Scene, fleet: Fleet, steps: Sequence[Step]) -> Score:
    """Of an episode that is over."""
    arriving, answers = scene.trace.requests, fleet.answers()
    first, tokens = scene.targets.met(arriving, answers)
    count = len(arriving)
    times = np.array([each.at_seconds for each in steps])
    end = float(times[-1])
    asked = float(np.diff(times) @ np.array([each.wanted for each in steps[:-1]]))
    late = int((~first).sum()), int((~tokens).sum())
    known = np.nan_to_num(answers.ttft_seconds(arriving), nan=np.inf)
    return Score(
        attainment=1.0 - sum(late) / count,
        joint=float((first & tokens).mean()),
        ttft_violations=late[0],
        tpot_violations=late[1],
        requests=count,
        average_replicas=asked / end,
        average_paid_replicas=fleet.replica_seconds(0.0, end) / end,
        seconds=end,
        p99_ttft_seconds=float(np.quantile(known, 0.99, method="higher")),
    )
