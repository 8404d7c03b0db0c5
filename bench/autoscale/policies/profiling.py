"""What a deployment and a sweep of one engine before it tell the laws, from the engine itself.

WVA and Dynamo profile an engine before or while they scale it; the sweep here runs the truth of the
replay, as a real one would, over prefills up to the step's tokens and caches up to full.
"""

from __future__ import annotations

from bench.autoscale.policies.service import Bounds, ForwardPass, Service
from bench.autoscale.scene import Scene
from poolwise.sim.serving.costs import EngineLimits, IterationCosts, StepTable

PREFILL_SHARES = (0.0, 0.0625, 0.25, 0.5, 1.0)
"""Of the tokens of a step."""
CACHE_SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
CONTEXT_TOKENS = 2000
"""Of a decoding sequence in the sweep."""


def service(scene: Scene) -> Service:
    """The service of a scene, as every law is told it."""
    limits = scene.engine.limits
    return Service(
        bounds=Bounds(scene.least_replicas, scene.most_replicas),
        ttft_target_seconds=scene.targets.ttft_seconds,
        tpot_target_seconds=scene.targets.tpot_seconds,
        batched_tokens=limits.max_batched_tokens,
        sequences=limits.max_num_seqs,
        kv_tokens=limits.kv_tokens,
        profile=profile(scene.engine.costs, limits),
    )


def profile(costs: IterationCosts, limits: EngineLimits) -> tuple[ForwardPass, ...]:
    """Iterations over a grid of prefill tokens and of caches in use."""
    table = StepTable(costs, limits)
    return tuple(
        _measured(table, limits, prefill, cache)
        for prefill in PREFILL_SHARES
        for cache in CACHE_SHARES
        if prefill or cache
    )


def _measured(
    table: StepTable, limits: EngineLimits, prefill_share: float, cache_share: float
) -> ForwardPass:
    keys = int(cache_share * limits.kv_tokens)
    sequences = min(keys // CONTEXT_TOKENS, limits.max_num_seqs)
    prefill = min(
        int(prefill_share * limits.max_batched_tokens), limits.max_batched_tokens - sequences
    )
    seconds = (
        table.tokens[prefill + sequences]
        + table.sequences[sequences + bool(prefill)]
        + table.key_seconds * keys
        + table.prompt_key_seconds * prefill * (prefill + 1) / 2
    )
    return ForwardPass(prefill, keys, seconds)
