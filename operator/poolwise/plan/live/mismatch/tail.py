"""A tail that grows faster than the load: neither the number of replicas nor the traffic explains
it, so the machine (a noisy neighbour, throttling, a slow disk or link) or the engine does.

The last five minutes are held against what was before: the tail has grown when its estimate is half
as long again, and when far more requests than before lie beyond an edge of the bucket that it was
in. The estimate alone tells too little: a tail just below an edge moves a whole bucket by little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from poolwise.model.work import Target
from poolwise.plan.live.mismatch.burden import REQUESTS, burden, has_grown
from poolwise.plan.live.mismatch.clue import Baseline, Clue, Mismatch
from poolwise.plan.live.mismatch.history import (
    KEPT_SECONDS,
    History,
    Minute,
    covered_seconds,
    settled,
)
from poolwise.plan.scaling.learning import histogram_of
from poolwise.plan.signals.percentile import TAIL_SAMPLES, percentile_of, share_within
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.wording import duration, three_digits

RECENT_SECONDS = 300.0
REST_SECONDS = 300.0
"""Between what is compared: a change does not count as what it changed from."""
LEAST_BEFORE_SECONDS = 240.0
"""Of the past that is compared with."""
LEAST_PERCENTILE = 90.0
"""Below it is no tail."""
GROWTH, LEAST_GROWTH = 1.5, 1.2
"""Of the estimate: told from the first on, and until it is below the second."""
BEYOND = 3.0
"""Times as many requests beyond an edge: where times scatter as usual (a deviation of 0.7
of their logarithm), 1 in 100 becomes 2 when they are 1.2 times as long, and 4 when 1.5 times."""
FELT_SHARE = 0.25
"""Of the target: a tail below it is nobody's trouble."""
MOST_SHORT = 0.2
"""Of the looks of the past at which replicas were missing: more, and it was not at rest."""


def tail_outgrows_load(
    targets: Iterable[Target], history: History, baseline: Baseline | None
) -> Clue | None:
    """The target whose tail grew most; None where too little was seen to compare.

    :param baseline: what it is told against, while it is.
    """
    recent = history.within(RECENT_SECONDS)
    if baseline is not None:
        same = [each for each in targets if str(each) == baseline.target]
        return _against(baseline, same[0], recent) if same else None
    found = _grown(targets, history, recent)
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _grown(
    targets: Iterable[Target], history: History, recent: Sequence[Minute]
) -> Iterator[tuple[float, Clue]]:
    past = history.within(KEPT_SECONDS, RECENT_SECONDS + REST_SECONDS)
    if not recent or covered_seconds(past) < LEAST_BEFORE_SECONDS or not _was_at_rest(past):
        return
    before_load, load = burden(past), burden(recent)
    for target in targets:
        compared = _compared(target, past, recent)
        if compared is None:
            continue
        percentile, before, now = compared
        was, is_ = percentile_of(before, percentile), percentile_of(now, percentile)
        if was is None or is_ is None or was.estimate <= 0.0:
            continue
        growth = is_.estimate / was.estimate
        baseline = Baseline(str(target), percentile, was.estimate, before_load)
        is_there = (
            growth >= GROWTH
            and any(_far_more(before, now, edge, percentile) for edge in (was.lower, was.upper))
            and is_.upper >= FELT_SHARE * target.seconds
            and not has_grown(load, before_load)
        )
        yield growth, _clue(target, baseline, is_.estimate, load.get(REQUESTS), is_there)


def _against(baseline: Baseline, target: Target, recent: Sequence[Minute]) -> Clue | None:
    """While it is told: against what was before, however long ago."""
    delta = settled(recent)
    seen = histogram_of(delta, target) if delta is not None else None
    if seen is None or seen.count * (1.0 - baseline.percentile / 100.0) < TAIL_SAMPLES:
        return None
    now, load = percentile_of(seen, baseline.percentile), burden(recent)
    if now is None:
        return None
    is_there = not has_grown(load, baseline.load)
    return _clue(target, baseline, now.estimate, load.get(REQUESTS), is_there)


def _far_more(before: Histogram, now: Histogram, seconds: float, percentile: float) -> bool:
    """Whether the share of requests that took longer is far above that of before, and above what
    the percentile leaves."""
    shares = [share_within(each, seconds) for each in (before, now)]
    was, is_ = (0.0 if share is None else 1.0 - share.upper for share in shares)
    return is_ >= BEYOND * max(was, 1.0 - percentile / 100.0)


def _clue(
    target: Target,
    baseline: Baseline,
    seconds: float,
    rate: float | None,
    is_there: bool,
) -> Clue:
    growth = seconds / baseline.seconds
    before = baseline.load.get(REQUESTS)
    loads = f" at {three_digits(rate)} instead of {three_digits(before)}" if before and rate else ""
    told = (
        f"{target.metric} p{baseline.percentile:.3g} is {duration(seconds)}, "
        f"{three_digits(growth)} times the earlier {duration(baseline.seconds)},"
        f"{loads} requests/s per replica and no longer prompts or answers: look for a noisy "
        "neighbour, thermal or power throttling, or a new version of the engine"
    )
    is_gone = growth < LEAST_GROWTH or not is_there
    return Clue(Mismatch.TAIL_OUTGROWS_LOAD, is_there, is_gone, told, baseline)


def _was_at_rest(past: Sequence[Minute]) -> bool:
    """Whether there were replicas enough, so that no queue of then explains what is now."""
    looks = sum(each.looks for each in past)
    return sum(each.short for each in past) <= MOST_SHORT * looks


def _compared(
    target: Target, past: Sequence[Minute], recent: Sequence[Minute]
) -> tuple[float, Histogram, Histogram] | None:
    """The highest percentile, up to the target's, that both windows suffice for, and both."""
    found = [settled(past), settled(recent)]
    seen = [histogram_of(each, target) for each in found if each is not None]
    before, now = seen if len(seen) == 2 else (None, None)
    if before is None or now is None or min(before.count, now.count) <= TAIL_SAMPLES:
        return None
    highest = 100.0 * (1.0 - TAIL_SAMPLES / min(before.count, now.count))
    percentile = min(target.percentile, highest)
    return (percentile, before, now) if percentile >= LEAST_PERCENTILE else None
