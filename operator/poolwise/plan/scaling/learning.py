"""What a look teaches: lengths of requests, speed of replicas, and how many were late."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from poolwise.model.serving.load import Replica, state
from poolwise.model.serving.queueing import Lengths
from poolwise.plan.scaling.capability import Capability, relative_strength
from poolwise.plan.scaling.fragility import Lateness
from poolwise.plan.scaling.memory import Memory, Moments
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import Latency, LatencyTarget, Service
from poolwise.plan.signals.percentile import share_within
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import Delta

LENGTHS_HALF_LIFE_SECONDS, LENGTHS_HALF_LIFE_REQUESTS = 120.0, 1500.0
"""Whichever is longer: enough for a mean of heavy tails, and no more, since lengths drift."""
PRIOR_REQUESTS = 50.0
"""How many requests the declared lengths count as."""
SLOWNESS_HALF_LIFE_SECONDS = 120.0
MOST_SLOWNESS = 3.0
"""Either way. What lasts beyond it is rather another machine or model than was described."""
TAILS, TAIL_WEIGHT = 2, 0.25
"""Bounds of buckets below the target that are read as well, and what each counts."""
LEAST_RUNNING = 4.0
"""Sequences from which their mean context can be told."""
LEAST_TOKENS = 100.0
"""Gaps between tokens from which their mean tells a speed."""


def fading(moments: Moments, more: Moments, kept: float) -> Moments:
    """With lengths that were seen since."""
    return Moments(
        kept * moments.count + more.count,
        kept * moments.total + more.total,
        kept * moments.squares + more.squares,
        kept * moments.cubes + more.cubes,
    )


def blended(before: float | None, now: float, kept: float) -> float:
    """A figure that fades: so much is kept of what it was before, where that is known."""
    return now if before is None else kept * before + (1.0 - kept) * now


def _kept(delta: Delta, seconds: float) -> float:
    """Of what was seen of lengths before."""
    ended = delta.finished_requests or 0.0
    passed = seconds / LENGTHS_HALF_LIFE_SECONDS, ended / LENGTHS_HALF_LIFE_REQUESTS
    return float(0.5 ** min(passed))


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


def lengths(moments: Moments, declared: Lengths) -> Lengths:
    """What was seen, with what was declared as a few more requests."""
    prior = PRIOR_REQUESTS
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
    computed = memory.computed_share
    answers = lengths(memory.answers, declared.answer_tokens)
    prior = PRIOR_REQUESTS * declared.answer_tokens.mean
    generated = memory.generated_tokens + prior
    mean = generated / (memory.finished + PRIOR_REQUESTS) if memory.finished else answers.mean
    return Mix(
        lengths(memory.prompts, declared.prompt_tokens),
        Lengths(mean, answers.scv),
        declared.computed_share if computed is None else computed,
        memory.context_tokens,
    )


def with_lengths(memory: Memory, delta: Delta, seconds: float) -> Memory:
    """With the requests that were told of since."""
    kept = _kept(delta, seconds)
    ended, generated = delta.finished_requests, delta.generated_tokens
    is_told, answers = ended is not None and generated is not None, delta.answer_lengths_tokens
    return replace(
        memory,
        prompts=fading(memory.prompts, _prompts(delta), kept),
        answers=fading(memory.answers, _moments(answers, _each(generated, ended)), kept),
        finished=kept * memory.finished + (ended or 0.0) * is_told,
        generated_tokens=kept * memory.generated_tokens + (generated or 0.0) * is_told,
        computed_share=computed_share(memory.computed_share, delta, kept),
    )


def context_tokens(before: float | None, samples: Iterable[Sample], served: Replica,
                   seconds: float) -> float | None:  # fmt: skip
    """Cached tokens of a running sequence, from how full caches are; fading."""
    held = running = 0.0
    for each in samples:
        if each.kv_cache_usage is not None and each.running is not None:
            held, running = held + each.kv_cache_usage, running + each.running
    room = served.cache_slots * served.context_tokens
    if running < LEAST_RUNNING or not math.isfinite(room) or held <= 0.0:
        return before
    return blended(before, held * room / running, 0.5 ** (seconds / SLOWNESS_HALF_LIFE_SECONDS))


def computed_share(before: float | None, delta: Delta, kept: float) -> float | None:
    """Of prompt tokens, those that were not in the prefix cache; fading."""
    if delta.cached_prompt_tokens is None or not delta.prompt_tokens:
        return before
    return blended(before, 1.0 - min(delta.cached_prompt_tokens / delta.prompt_tokens, 1.0), kept)


def log_slowness(
    before: float,
    served: Replica,
    delta: Delta,
    in_flight: float,
    seconds: float,
    is_one_idle: bool,
) -> float:
    """ln(observed / predicted) time between two tokens at the load that was seen; fading.

    A replica that takes f times as long for every step spends the share ``f * rate * added`` of its
    time on prompts, so the observed gap o is ``f * D / (1 - f * rate * added)``, and
    ``f = o / (D + o * rate * added)``. Where a replica idles beside others, a router that looks
    sends it the next prompt, which then delays nobody: ``f`` may be up to ``o / D``, and of what
    lies between both the nearest to the model's own word is taken.

    :param in_flight: sequences in the batch of one replica.
    :param is_one_idle: whether one of several replicas had nothing to do.
    """
    gaps, observed = delta.inter_token_seconds or delta.tpot_seconds, observed_gap_seconds(delta)
    if gaps is None or gaps.count < LEAST_TOKENS or not served.generates or in_flight <= 0.0:
        return before
    if observed is None or observed <= 0.0:  # no speed can be told from it
        return before
    at = state(served, min(max(in_flight, served.largest_load * 2.0**-16), served.largest_load))
    began = delta.ttft_seconds.count if delta.ttft_seconds else delta.finished_requests or 0.0
    rate = began / max(delta.replica_seconds, 1e-9)
    added = at.added_seconds * served.interference
    least = math.log(observed / (at.decode.seconds + observed * rate * added))
    most = math.log(observed / at.decode.seconds) if is_one_idle else least
    bound = math.log(MOST_SLOWNESS)
    now = max(min(max(0.0, least), most, bound), -bound)
    return blended(before, now, 0.5 ** (seconds / SLOWNESS_HALF_LIFE_SECONDS))


def observed_gap_seconds(delta: Delta) -> float | None:
    """Mean time between two tokens."""
    gaps = delta.inter_token_seconds or delta.tpot_seconds
    return gaps.mean if gaps is not None else None


def histogram_of(delta: Delta, target: LatencyTarget) -> Histogram | None:
    """What was observed of a target's latency."""
    found: Histogram | None = getattr(delta, target.latency.histogram)
    return found


def lateness(service: Service, delta: Delta, able: Capability) -> Iterator[Lateness]:
    """Requests that were late, and those beyond shorter times than the target that limits."""
    late, count = late_requests(service, able.helped(service.targets), delta)
    if not count:
        return
    limit = able.limit
    shorter = tuple(_shorter(delta, limit, able)) if limit else ()
    yield Lateness(late, count, weight=1.0 - TAIL_WEIGHT * len(shorter))
    yield from shorter


def _shorter(delta: Delta, limit: LatencyTarget, able: Capability) -> Iterator[Lateness]:
    """Of mean gaps alone, which grow with the load all along: the first token of a long prompt
    takes long at any load, and waiting for a full cache begins at once."""
    seen = histogram_of(delta, limit)
    if seen is None or limit.latency is not Latency.TPOT:
        return
    bounds = [each for each in seen.upper_bounds if each < limit.seconds]
    for bound in bounds[len(bounds) - TAILS :]:
        beyond = seen.count - seen.counts[seen.upper_bounds.index(bound)]
        strength = relative_strength(able, limit, bound)
        if strength < 1.0:
            yield Lateness(beyond, seen.count, strength, TAIL_WEIGHT)


def late_requests(
    service: Service, targets: Sequence[LatencyTarget], delta: Delta
) -> tuple[float, float]:
    """Requests that were late, in units of the strictest target's allowance, and all of them.

    Of several targets the one that uses up most of its allowance counts; all together where one
    request has to meet them all. First tokens are counted as they come; of what comes later, those
    that are under way are taken to be as late as those that ended.
    """
    late, later, count = [0.0], [], 0.0
    for target in targets:
        seen = histogram_of(delta, target)
        share = share_within(seen, target.seconds) if seen is not None else None
        if share is None:
            continue
        used = (1.0 - share.estimate) * service.allowed_share / target.allowed_share
        if target.latency is Latency.TTFT:
            late.append(used * share.samples)
        else:
            later.append(used)
        count = max(count, share.samples if target.latency is not Latency.ITL else 0.0)
    if not count and delta.ttft_seconds is not None:
        count = delta.ttft_seconds.count
    late += [used * count for used in later]
    return min(sum(late) if service.is_joint else max(late), count), count
