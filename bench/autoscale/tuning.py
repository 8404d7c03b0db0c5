"""Rivals at their best: the main target of each is tuned for the trace, in hindsight.

The published setting is tried first, then bisection (in logarithms) between it and the end of the
range that the result points to. The cheapest that reaches 99 % (of what any fleet can reach, see
:mod:`bench.autoscale.reach`) is taken; where none does, the published setting or the one that asks
for the most replicas, whichever attains more. Fleets that do not move are sized in the same way. A
replay ends as soon as it cannot be taken any more (:mod:`bench.autoscale.watching`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bench.autoscale.outcome import Outcome
from bench.autoscale.policies.laws import LAWS, Law, Setting
from bench.autoscale.policies.profiling import service
from bench.autoscale.policies.static import HOUR_SECONDS, Hourly, Static
from bench.autoscale.policy import Policy
from bench.autoscale.reach import aim
from bench.autoscale.scene import BIN_SECONDS, Scene
from bench.autoscale.watching import Dear, Late, Watched

HEADROOMS = (0.5, 3.0)
"""Of a schedule over what a fluid needs in the hour's busiest minute."""
MOST_BISECTIONS = 5
FEWEST_BISECTIONS = 3
REQUESTS_REPLAYED = 1_500_000
"""By one law in all its tries, so that a large trace ends in time too."""

Play = Callable[[Policy], Outcome]
STATIC_MEAN, BEST_STATIC, HOURLY = "static_mean", "best_static", "hourly"
FLEETS = (STATIC_MEAN, BEST_STATIC, HOURLY)
"""Rivals that do not scale on what they see: fixed fleets, and one for each hour of the day."""
NAMES = (*FLEETS, *LAWS)
"""Every rival."""


@dataclass(frozen=True)
class Tried:
    """One setting and what came of it."""

    setting: Setting
    outcome: Outcome | None
    """None: ended early."""
    is_late: bool = False
    """It ended early because too many requests were late, and not because it was dear."""
    is_good: bool = False
    """It attains what it shall."""

    @property
    def is_missed(self) -> bool:
        """Late, or below its aim at its end; a dear one may be either and counts as good."""
        return self.is_late or (self.outcome is not None and not self.is_good)


@dataclass(frozen=True)
class Complete:
    """One setting that was replayed to the end."""

    setting: Setting
    outcome: Outcome


@dataclass(frozen=True)
class Tuned:
    """A law at its best, and all that was tried to the end."""

    best: Complete
    tries: tuple[Complete, ...]


@dataclass
class Trials:
    """Tries of one law, each ended as early as the ones before allow."""

    scene: Scene
    play: Play
    make: Callable[[Setting], Policy]
    tries: list[Tried] = field(default_factory=list)

    @cached_property
    def aim(self) -> float:
        """What shall be attained."""
        return aim(self.scene)

    def attempt(self, setting: Setting) -> Tried:
        """Replay it until its end is known."""
        good = [each.outcome.replica_hours for each in self.tries if each.is_good and each.outcome]
        affordable = min(good, default=math.inf)
        watched = Watched(self.make(setting), self.scene, 1.0 - self.aim, affordable)
        try:
            outcome = self.play(watched)
            tried = Tried(setting, outcome, is_good=outcome.attainment >= self.aim)
        except Late:
            tried = Tried(setting, None, is_late=True)
        except Dear:
            tried = Tried(setting, None)
        self.tries.append(tried)
        return tried

    def chosen(self) -> Tuned:
        """The cheapest good one; else the best of what came to its end and of both ends."""
        ended = [Complete(t.setting, t.outcome) for t in self.tries if t.outcome is not None]
        good = [each for each in ended if each.outcome.attainment >= self.aim]
        if good:
            return Tuned(min(good, key=lambda each: each.outcome.replica_hours), tuple(ended))
        ended += self._replayed(each.setting for each in self._both_ends())
        return Tuned(max(ended, key=lambda each: each.outcome.attainment), tuple(ended))

    def _both_ends(self) -> list[Tried]:
        """What is published, and what asks for the most replicas: the last of a bisection.

        When a replay was certain to be late says little: the worst answer so little that they are
        found out last.
        """
        ends = [self.tries[0], self.tries[-1]] if len(self.tries) > 1 else self.tries
        return [each for each in ends if each.outcome is None]

    def _replayed(self, settings: Iterable[Setting]) -> list[Complete]:
        return [Complete(each, self.play(self.make(each))) for each in settings]


def tuned(scene: Scene, name: str, play: Play) -> Tuned:
    """One rival by name on one scene."""
    if name == STATIC_MEAN:
        mean: Setting = {"replicas": float(_mean_replicas(scene))}
        only = Complete(mean, play(_static(mean)))
        return Tuned(only, (only,))
    if name == BEST_STATIC:
        return _best_static(Trials(scene, play, _static))
    if name == HOURLY:
        return _hourly(Trials(scene, play, lambda setting: Hourly(_schedule(scene, setting))))
    return _law(scene, LAWS[name], play)


def bisections(scene: Scene) -> int:
    """How many steps a law gets; fewer for a trace with more requests."""
    affordable = REQUESTS_REPLAYED // max(len(scene.trace.requests), 1)
    return min(max(affordable, FEWEST_BISECTIONS), MOST_BISECTIONS)


def _law(scene: Scene, law: Law, play: Play) -> Tuned:
    told = service(scene)
    trials = Trials(scene, play, lambda setting: law.policy(told, setting))
    search(law, lambda setting: trials.attempt(setting).is_missed, bisections(scene))
    return trials.chosen()


def search(law: Law, attempt: Callable[[Setting], bool], steps: int) -> None:
    """Try what is published, then bisect its main target.

    :param attempt: replays a setting; whether one that asks for more replicas is to be tried next.
    """
    knob = law.knob
    has_too_few = attempt({knob.name: knob.published})
    for setting in law.others:
        attempt(setting)
    most, fewest = (knob.most, knob.published) if has_too_few else (knob.published, knob.fewest)
    for _ in range(steps):
        middle = math.sqrt(most * fewest)
        has_too_few = attempt({knob.name: middle, **law.beside})
        most, fewest = (most, middle) if has_too_few else (middle, fewest)


def _static(setting: Setting) -> Policy:
    return Static(int(setting["replicas"]))


def _mean_replicas(scene: Scene) -> int:
    """What the mean of the load needs."""
    return max(math.ceil(float(scene.needed_replicas(BIN_SECONDS).mean())), scene.least_replicas)


def _best_static(trials: Trials) -> Tuned:
    """The fewest that attain it, exactly: bisection over whole numbers, near the busiest minute."""
    scene = trials.scene
    fewest, most = scene.least_replicas, scene.most_replicas
    peak = math.ceil(float(scene.needed_replicas(BIN_SECONDS).max()))
    middle = min(max(peak, fewest), most)
    while fewest < most or not trials.tries:
        is_late = trials.attempt({"replicas": float(middle)}).is_missed
        fewest, most = (min(middle + 1, most), most) if is_late else (fewest, middle)
        middle = (fewest + most) // 2
    if not any(each.is_good for each in trials.tries):
        trials.attempt({"replicas": float(most)})
    return trials.chosen()


def _hourly(trials: Trials) -> Tuned:
    """A schedule by each hour's busiest minute, times a headroom."""
    fewest, most = HEADROOMS
    for _ in range(bisections(trials.scene) + 1):
        middle = math.sqrt(fewest * most)
        is_late = trials.attempt({"headroom": middle}).is_missed
        fewest, most = (middle, most) if is_late else (fewest, middle)
    return trials.chosen()


def _schedule(scene: Scene, setting: Setting) -> list[int]:
    needed = scene.needed_replicas(BIN_SECONDS)
    per_hour = int(HOUR_SECONDS / BIN_SECONDS)
    hours = np.array_split(needed, range(per_hour, len(needed), per_hour))
    return [
        min(
            max(math.ceil(float(hour.max()) * float(setting["headroom"])), scene.least_replicas),
            scene.most_replicas,
        )
        for hour in hours
    ]
