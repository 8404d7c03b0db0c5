"""How a mixture of experts is cut of which only two counts are known: all and active parameters.

With routed experts X, of which the share r is active, and the rest U (attention, dense and shared
MLPs, embeddings), ``U + X = total`` and ``U + r*X = active``: a third fact settles both. It is
U over the active count, which the mixtures of ``models.csv`` have much alike. Experts per token
alone, or their count alone, are no such fact: 8 of 128 leave nothing for U where less than a
sixteenth is active, as in DeepSeek-V3, Kimi-K2 or gpt-oss-120b.
"""

from __future__ import annotations

import math

from poolwise.model.shapes import Experts

USUAL_REST = 0.46
"""U over the active count: the median of the first 17 mixtures in ``models.csv`` with more than 8
experts. All 55 of today have 0.49 (quartiles 0.40 and 0.55, from 0.13 to 0.82)."""
USUAL_TOP_K = 8
"""The most frequent one: 28 of those 55."""
FEW_EXPERTS, FEW_TOP_K = 8, 2
"""All three of ``models.csv`` with at most 8 experts: Mixtral 8x7B and 8x22B, Grok-1."""
LEAST_REST = 0.075
"""Grok-1 keeps the least: 0.077."""
LEAST_WIDTH = 64


def usual_experts(total: float, active: float, layers: int, hidden: int) -> Experts:
    """Gated experts in each layer that make up what is not active, as published mixtures do."""
    count, top_k = _few_or_many(total, active)
    routed = (total - active) / (1 - top_k / count)
    width = max(LEAST_WIDTH, round(routed / (layers * count * 3 * hidden)))
    return Experts(count, top_k, shared=0, ffn=width, dense_layers=0)


def _few_or_many(total: float, active: float) -> tuple[int, int]:
    """Experts and how many of them a token uses."""
    routed = (total - active) / (1 - FEW_TOP_K / FEW_EXPERTS)
    if (total - routed) / active >= LEAST_REST:
        return FEW_EXPERTS, FEW_TOP_K
    share = (1 - USUAL_REST) * active / (total - USUAL_REST * active)
    return 2 ** round(math.log2(USUAL_TOP_K / share)), USUAL_TOP_K
