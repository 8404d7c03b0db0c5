"""What any fleet can attain: a prompt that takes longer than its target on an idle engine is late.

Asked for 99 % of all requests where fewer than that can be in time at all, every search would end
at the largest fleet there is. So the wanted share is asked of those that can.
"""

from __future__ import annotations

import numpy as np

from bench.autoscale.scene import Scene
from poolwise.sim.serving.costs import StepTable
from poolwise.sim.serving.requests import Floats


def aim(scene: Scene) -> float:
    """Share of the scored requests that shall meet both targets."""
    return scene.targets.attainment * reachable_share(scene)


def reachable_share(scene: Scene) -> float:
    """Of the scored requests, those in time on an idle replica."""
    scored = scene.trace.requests.arrival_seconds >= scene.warm_up_seconds
    if not scored.any():
        return 1.0
    return float((idle_ttft_seconds(scene) <= scene.targets.ttft_seconds)[scored].mean())


def idle_ttft_seconds(scene: Scene) -> Floats:
    """Of each request alone: its prompt in steps of as many tokens as one may hold."""
    requests, table = scene.trace.requests, StepTable(scene.engine.costs, scene.engine.limits)
    step_tokens = scene.engine.limits.max_batched_tokens
    computed = requests.input_tokens - requests.cached_tokens
    full, rest = np.divmod(computed, step_tokens)
    tokens = np.asarray(table.tokens)
    steps = full + (rest > 0)
    pairs = (requests.input_tokens**2 - requests.cached_tokens**2) / 2.0
    found: Floats = (
        full * tokens[step_tokens]
        + np.where(rest > 0, tokens[rest], 0.0)
        + steps * table.sequences[1]
        + pairs * table.prompt_key_seconds
        + table.request_seconds
    )
    return found
