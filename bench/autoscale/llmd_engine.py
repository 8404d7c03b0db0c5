"""The engine behind llm-d's slo-aware benchmark, as llm-d measured it.

Qwen3-32B in 16 bits on two H100s, vLLM's own limits. Our serving model reads its prompts a fifth
too slowly, so a replica would be full at 1.3 requests/s, where their loop "settles empirically at
1.4-1.5": the whole protocol would be played before too small a fleet. So prompts take what llm-d's
own calibration says, and the knee comes out where they saw it (:mod:`bench.autoscale.llmd_knee`).
Steps that only generate stay the model's: with 32 requests of 1,024 tokens and as many answered
they make a token take 19.6 ms, and 20.06 were measured (vLLM 0.12).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from bench.autoscale.engine import Engine, engine
from poolwise.sim.serving.costs import Curve, IterationCosts, StepTable

PROMPT_TOKENS_PER_SECOND, CHUNK_TOKENS = 15_928.0, 8192
"""Tokens of an idle replica's prompt over its time to the first token (median of 20), and that
prompt's length. Source: ``llm-d:guides/recipes/router/calibration/configuration-matrix.md``, row
``gpu/vllm``."""
MOST_DECODING = 128.0
"""Tokens of a step up to which it only generates: a cache holds fewer sequences of this load."""


@cache
def modelled() -> Engine:
    """By the shipped model alone."""
    return engine("Qwen3-32B", "H100-SXM5-80GB", 2)


@cache
def measured() -> Engine:
    """Prompts as fast as llm-d measured them; what is known to the controller stays the model's."""
    on = modelled()
    table, costs = StepTable(on.costs, on.limits), on.costs
    beside = table.sequences[1] + table.request_seconds
    keys = table.prompt_key_seconds * CHUNK_TOKENS * (CHUNK_TOKENS + 1) / 2
    took = CHUNK_TOKENS / PROMPT_TOKENS_PER_SECOND - beside
    return replace(on, costs=_with_prompts(costs, took / (table.tokens[CHUNK_TOKENS] + keys)))


def _with_prompts(costs: IterationCosts, factor: float) -> IterationCosts:
    """Prompts that take so many times as long, and steps that only generate as they are."""
    curve = costs.tokens
    generating = max(
        seconds
        for count, seconds in zip(curve.counts, curve.seconds, strict=True)
        if count <= MOST_DECODING
    )
    seconds = tuple(max(factor * each, min(each, generating)) for each in curve.seconds)
    return replace(
        costs,
        tokens=Curve(curve.counts, seconds),
        prompt_key_seconds=factor * costs.prompt_key_seconds,
    )
