"""What a look teaches of replicas: how fast they are, and how many requests were late."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from poolwise.model.serving.load import Replica, state
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import Capability, relative_strength
from poolwise.plan.scaling.fading import blended
from poolwise.plan.scaling.fragility import Lateness
from poolwise.plan.scaling.service import Service
from poolwise.plan.signals.percentile import share_within, tail_share
from poolwise.plan.signals.sample import HISTOGRAMS, Histogram
from poolwise.plan.signals.window import Delta

SLOWNESS_HALF_LIFE_SECONDS = 120.0
MOST_SLOWNESS = 3.0
"""Either way. What lasts beyond it is rather another machine or model than was described."""
TAILS, TAIL_WEIGHT = 2, 0.25
"""Bounds of buckets below the target that are read as well, and what each counts."""
LEAST_STRENGTH = 0.25
"""Of the load that the target leaves: what hardly any load makes late tells of a lone request, and
not of the edge. Of a bound that no request stays below, whoever was in time would speak for an edge
at a thousand times the load."""
LEAST_TOKENS = 100.0
"""Gaps between tokens from which their mean tells a speed."""


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


def histogram_of(delta: Delta, target: Target) -> Histogram | None:
    """What was observed of a target's latency."""
    found: Histogram | None = getattr(delta, HISTOGRAMS[target.metric])
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


def _shorter(delta: Delta, limit: Target, able: Capability) -> Iterator[Lateness]:
    """Of mean gaps alone, which grow with the load all along: the first token of a long prompt
    takes long at any load, and waiting for a full cache begins at once."""
    seen = histogram_of(delta, limit)
    if seen is None or limit.metric is not Metric.TPOT:
        return
    bounds = [each for each in seen.upper_bounds if each < limit.seconds]
    for bound in bounds[len(bounds) - TAILS :]:
        beyond = seen.count - seen.counts[seen.upper_bounds.index(bound)]
        strength = relative_strength(able, limit, bound)
        if LEAST_STRENGTH <= strength < 1.0:
            yield Lateness(beyond, seen.count, strength, TAIL_WEIGHT)


def late_requests(service: Service, targets: Sequence[Target], delta: Delta) -> tuple[float, float]:
    """Requests that were late, in units of the strictest target's allowance, and all of them.

    Of several targets the one that uses up most of its allowance counts. First tokens are counted
    as they come; of what comes later, those that are under way are taken to be as late as those
    that ended.
    """
    late, later, count = [0.0], [], 0.0
    for target in targets:
        seen = histogram_of(delta, target)
        if seen is None or seen.count <= 0.0:
            continue
        used = observed_late_share(seen, target) * service.allowed_share / target.allowed_share
        if target.metric is Metric.TTFT:
            late.append(used * seen.count)
        else:
            later.append(used)
        count = max(count, seen.count if target.metric is not Metric.ITL else 0.0)
    if not count and delta.ttft_seconds is not None:
        count = delta.ttft_seconds.count
    late += [used * count for used in later]
    return min(max(late), count), count


def observed_late_share(seen: Histogram, target: Target) -> float:
    """Of what was observed; 0 where nothing was. Within a bucket gaps fall off by a power: most are
    of steps that are all alike, and few are longer (``python -m bench.autoscale.between``)."""
    longest = max(filter(math.isfinite, seen.upper_bounds), default=0.0)
    if not target.metric.is_from_arrival and target.seconds <= longest:
        return tail_share(seen, target.seconds)
    share = share_within(seen, target.seconds)
    return 1.0 - share.estimate if share else 0.0
