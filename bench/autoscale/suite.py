"""All policies and oracles on one scene, two at a time.

Rivals are tuned for the scene (:mod:`bench.autoscale.tuning`); ours comes as it is:
``bench.autoscale.ours.policy(scene)``, and ``informed(scene)`` with the true rate of when a start
would end in place of its forecast, which is O2. What is not there is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial

from bench.autoscale import oracles
from bench.autoscale.outcome import Outcome
from bench.autoscale.policy import Policy
from bench.autoscale.replay import replay
from bench.autoscale.scene import Scene
from bench.autoscale.tuning import NAMES as RIVALS
from bench.autoscale.tuning import tuned

OURS, O1, O2 = "ours", "O1", "O2"
ORACLES = (O1, O2)
NAMES = (OURS, *RIVALS, *ORACLES)
PROCESSES = 2
_OURS = {OURS: "policy", O2: "informed"}
"""Functions of :mod:`bench.autoscale.ours`."""


@dataclass(frozen=True)
class Result:
    """Of one policy, tuned where it is a rival."""

    name: str
    setting: dict[str, float | str]
    outcome: Outcome


def available() -> tuple[str, ...]:
    """Policies and oracles that are there."""
    return tuple(name for name in NAMES if name not in _OURS or _ours(name) is not None)


def run(scene: Scene, names: Sequence[str], processes: int = PROCESSES) -> Iterator[Result]:
    """As they end; in this process when there is only one."""
    if processes <= 1:
        yield from (result(scene, name) for name in names)
        return
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, fork, initializer=_hold, initargs=(scene,)) as pool:
        for done in as_completed([pool.submit(_held, name) for name in _longest_first(names)]):
            yield done.result()


def result(scene: Scene, name: str) -> Result:
    """Of one of :data:`NAMES`; an error tells whose it is."""
    try:
        return _result(scene, name)
    except Exception as error:
        error.add_note(f"{name} on {scene.trace.name}")
        raise


def _result(scene: Scene, name: str) -> Result:
    play = partial(replay, scene)
    if name == O1:
        return Result(name, {}, oracles.clairvoyant(scene, play))
    if name in _OURS:
        make = _ours(name)
        assert make is not None
        return Result(name, {}, play(make(scene)))
    best = tuned(scene, name, play).best
    return Result(name, dict(best.setting), best.outcome)


def _ours(name: str) -> Callable[[Scene], Policy] | None:
    if importlib.util.find_spec("bench.autoscale.ours") is None:
        return None
    return getattr(importlib.import_module("bench.autoscale.ours"), _OURS[name], None)


def _longest_first(names: Sequence[str]) -> list[str]:
    """What is searched for takes longer than what is replayed once."""
    return sorted(names, key=lambda name: (name != O1, name in _OURS, name))


_scenes: list[Scene] = []
"""Of a worker: the one scene, which is inherited and not sent."""


def _hold(scene: Scene) -> None:
    _scenes[:] = [scene]


def _held(name: str) -> Result:
    return result(_scenes[0], name)
