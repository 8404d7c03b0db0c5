"""Targets that are missed right after replicas became ready: they take requests too early."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from poolwise.model.work import Metric, Target
from poolwise.plan.live.mismatch.clue import Clue, Mismatch
from poolwise.plan.live.mismatch.history import WARMING_SECONDS, History, Minute, settled
from poolwise.plan.scaling.learning import histogram_of
from poolwise.plan.signals.percentile import share_within
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import joined
from poolwise.plan.wording import percent, plural

CONCENTRATED, SPREAD = 0.5, 0.25
"""Of all that were late, those of warming replicas: told from, and told until."""
MOST_SERVED = 0.25
"""Of all requests: where warming replicas serve more, most that is late is theirs anyway."""
LEAST_LATE = 10.0
SPENT = 0.5
"""Of the allowance that is used up in all: less is what targets allow."""


def warm_up_breaches(targets: Iterable[Target], history: History) -> Clue | None:
    """The target of which warm-ups spoil most; None where no replica came lately, or none told."""
    found = _found(targets, history.minutes)
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _found(targets: Iterable[Target], minutes: tuple[Minute, ...]) -> Iterator[tuple[float, Clue]]:
    warm = settled(minutes)
    cold = joined([each.warming for each in minutes if each.warming is not None])
    count = len(frozenset[str]().union(*(each.newcomers for each in minutes)))
    if warm is None or cold is None:
        return
    for target in targets:
        theirs, others = (histogram_of(each, target) for each in (cold, warm))
        if theirs is None or others is None or not theirs.count or not others.count:
            continue
        clue_of = _clue(target, theirs, others, count)
        if clue_of is not None:
            yield clue_of


def _clue(
    target: Target, theirs: Histogram, others: Histogram, count: int
) -> tuple[float, Clue] | None:
    """By bounds that speak against it: the fewest late of theirs, the most of others."""
    cold, warm = share_within(theirs, target.seconds), share_within(others, target.seconds)
    if cold is None or warm is None:
        return None
    late, late_others = (1.0 - cold.upper) * cold.samples, (1.0 - warm.lower) * warm.samples
    share = late / max(late + late_others, 1.0)
    served = cold.samples / (cold.samples + warm.samples)
    spent = (late + late_others) / (cold.samples + warm.samples) / max(target.allowed_share, 1e-9)
    is_there = (
        late >= LEAST_LATE and share >= CONCENTRATED and served <= MOST_SERVED and spent >= SPENT
    )
    what = "gaps between tokens" if target.metric is Metric.ITL else "requests"
    told = (
        f"{percent(share)} of the {what} beyond the target of {target} came from "
        f"{plural(count, 'new replica')} in the first {WARMING_SECONDS / 60:.0f} min of being "
        f"ready, which served {percent(served)}: let readiness wait for a first answer, warm the "
        "engine up before (compile cache, modelCache, an image that is on the nodes), or keep more "
        "replicas (scaling.minReplicas)"
    )
    is_gone = share <= SPREAD or spent < SPENT / 2.0
    return share, Clue(Mismatch.WARM_UP_BREACHES, is_there, is_gone, told)
