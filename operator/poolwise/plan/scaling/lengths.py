"""What a look teaches of the lengths of requests, and how much of a prompt is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from poolwise.model.serving.load import Replica
from poolwise.model.serving.queueing import Lengths
from poolwise.plan.scaling import gaps, kinds
from poolwise.plan.scaling.fading import blended
from poolwise.plan.scaling.memory import Memory, Moments
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import Delta

HALF_LIFE_SECONDS, LEAST_HALF_LIFE_SECONDS = 120.0, 60.0
HALF_LIFE_REQUESTS = 1500.0
"""Lengths drift, so that what was seen of them fades: to a half in the first or in so many
requests, whichever takes longer; in the second, where so many for each unit of the squared
coefficient of variation (one at least) have come by then, since they tell a mean to within 2 %.
With two minutes at all times conversations that became longer were known three minutes late."""
LEAST_RUNNING = 4.0
"""Sequences from which their mean context can be told."""
CONTEXT_HALF_LIFE_SECONDS = 120.0


def _fading(moments: Moments, more: Moments, kept: float) -> Moments:
    """With lengths that were seen since."""
    return Moments(
        kept * moments.count + more.count,
        kept * moments.total + more.total,
        kept * moments.squares + more.squares,
        kept * moments.cubes + more.cubes,
    )


def _kept(memory: Memory, delta: Delta, seconds: float) -> float:
    """Of what was seen of lengths before."""
    ended = (delta.finished_requests or 0.0) / HALF_LIFE_REQUESTS
    square = max(memory.prompts.relative_square, memory.answers.relative_square)
    half_lives = min(seconds / HALF_LIFE_SECONDS, ended)
    if square > 0.0:  # else nothing tells how lengths spread
        sooner = min(seconds / LEAST_HALF_LIFE_SECONDS, ended / max(square - 1.0, 1.0))
        half_lives = max(half_lives, sooner)
    return float(0.5**half_lives)


def _prompts(delta: Delta) -> Moments:
    """By their lengths, else by counts of tokens and of ends, which tell of no spread: SGLang's
    histograms of lengths are off unless asked for."""
    ended, tokens = delta.finished_requests, delta.prompt_tokens
    if delta.prompt_lengths_tokens is None and ended and tokens:
        return Moments(ended, tokens)
    return _moments(delta.prompt_lengths_tokens, _each(tokens, ended))


def _each(tokens: float | None, ended: float | None) -> float | None:
    """Of each request that ended."""
    return tokens / ended if tokens is not None and ended else None


def _moments(seen: Histogram | None, usual: float | None) -> Moments:
    """The sum is exact; powers as of uniform lengths in each bucket, made to agree with it.

    :param usual: the mean where the sum is not known; None: nothing is told then.
    """
    mean = usual if seen is None or seen.mean is None else seen.mean
    if seen is None or seen.count <= 0.0 or mean is None:
        return Moments()
    cubes = squares = total = before = low = 0.0
    for bound, count in zip(seen.upper_bounds, seen.counts, strict=True):
        high = bound if math.isfinite(bound) else 2.0 * low
        cubes += (count - before) * (low + high) * (low * low + high * high) / 4.0
        squares += (count - before) * (low * low + low * high + high * high) / 3.0
        total += (count - before) * (low + high) / 2.0
        before, low = count, high
    exact = mean * seen.count if seen.total is None else seen.total
    scale = exact / total if total > 0.0 else 1.0
    return Moments(seen.count, exact, squares * scale * scale, cubes * scale**3)


def lengths(moments: Moments, declared: Lengths, prior: float) -> Lengths:
    """What was seen, with what was declared as so many more requests."""
    if moments.count <= 0.0:
        return declared
    count = moments.count + prior
    mean = (moments.total + prior * declared.mean) / count
    if not moments.squares or mean <= 0.0:
        return Lengths(mean, declared.scv)
    spread = 1.0 + declared.scv  # of the log-normal law
    square = (moments.squares + prior * (declared.mean**2 * spread)) / count / mean**2
    cube = (moments.cubes + prior * (declared.mean * spread) ** 3) / count / mean**3
    scv = max(square - 1.0, 0.0)
    least = scv * (scv - 1.0)  # no sizes above 0 have less
    skew = max(cube - 3.0 * square + 2.0, least) if moments.cubes else None
    return Lengths(mean, scv, skew)


def mix(declared: Mix, memory: Memory) -> Mix:
    """What requests look like now.

    Answers that are under way count as well: those that ended first are the short ones. The mean
    is all generated tokens over all ends, the estimate for censored lifetimes.
    """
    computed, prior = memory.computed_share, memory.declared_requests
    answers = lengths(memory.answers, declared.answer_tokens, prior)
    generated = memory.generated_tokens + prior * declared.answer_tokens.mean
    mean = generated / (memory.finished + prior) if memory.finished else answers.mean
    return Mix(
        lengths(kinds.newest(memory.prompts, memory.begun), declared.prompt_tokens, prior),
        Lengths(mean, answers.scv),
        declared.computed_share if computed is None else computed,
        memory.context_tokens,
        gaps.gaps(memory.answer_counts, mean, declared.answer_tokens, prior),
    )


def with_lengths(memory: Memory, delta: Delta, seconds: float) -> Memory:
    """With the requests told of since; where these are of another kind, without those before."""
    prompts, begun, usual = _prompts(delta), kinds.begun(delta), _kept(memory, delta, seconds)
    wider = max(memory.prompts, prompts, key=lambda each: each.relative_square)
    kept = 0.0 if kinds.are_others(memory.prompts, prompts, wider) else usual
    begun_kept = 0.0 if kinds.are_others(memory.begun, begun, wider) else usual
    ended, generated = delta.finished_requests, delta.generated_tokens
    is_told, answers = ended is not None and generated is not None, delta.answer_lengths_tokens
    return replace(
        memory,
        declared_requests=kept * memory.declared_requests,
        prompts=_fading(memory.prompts, prompts, kept),
        begun=_fading(memory.begun, begun, begun_kept),
        answers=_fading(memory.answers, _moments(answers, _each(generated, ended)), kept),
        answer_counts=gaps.added(memory.answer_counts, gaps.counts(answers), kept),
        finished=kept * memory.finished + (ended or 0.0) * is_told,
        generated_tokens=kept * memory.generated_tokens + (generated or 0.0) * is_told,
        computed_share=computed_share(memory.computed_share, delta, kept),
    )


def context_tokens(
    before: float | None, looks: Iterable[tuple[Sample, Replica]], seconds: float
) -> float | None:
    """Cached tokens of a running sequence, from how full caches are; fading.

    :param looks: at replicas, each with what its pool's serve: caches differ in size.
    """
    held = running = 0.0
    for sample, served in looks:
        room = served.cache_slots * served.context_tokens
        if sample.kv_cache_usage is not None and sample.running and math.isfinite(room):
            held, running = held + sample.kv_cache_usage * room, running + sample.running
    if running < LEAST_RUNNING or held <= 0.0:
        return before
    return blended(before, held / running, 0.5 ** (seconds / CONTEXT_HALF_LIFE_SECONDS))


def computed_share(before: float | None, delta: Delta, kept: float) -> float | None:
    """Of prompt tokens, those that were not in the prefix cache; fading."""
    if delta.cached_prompt_tokens is None or not delta.prompt_tokens:
        return before
    return blended(before, 1.0 - min(delta.cached_prompt_tokens / delta.prompt_tokens, 1.0), kept)
