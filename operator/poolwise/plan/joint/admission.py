"""Which options of a workload are open at all, and what forbids the others, in numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poolwise.plan.joint.problem import NodeState, Option, PoolState, Rules, Workload
from poolwise.plan.limits import pays
from poolwise.plan.wording import duration, money, plural

REASONS_NAMED = 3
DIGITS = 6
"""Of an accelerator: shares are binary fractions."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The options that may ever start, or why there is none."""

    options: tuple[Option, ...]
    refusal: str = ""
    """A sentence; empty where there are options."""
    nearest: Option | None = None
    """Refused: the option that misses by least."""


@dataclass(frozen=True, slots=True)
class Against:
    """What forbids one option."""

    option: Option
    reason: str
    shortfall: float
    """Needed over available; infinite where no number tells."""


class Gate:
    """What is open on these pools, full or empty, at this moment."""

    def __init__(self, pools: Sequence[PoolState], rules: Rules, now: float) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self._rules, self._now = rules, now
        self._all = sum(pool.total for pool in pools if not pool.is_cpu)
        self._sizes: dict[tuple[str, str], list[Counter[int]]] = {}

    def admit(self, workload: Workload) -> Admission:
        """The options that capacity, limits and yield leave open."""
        kept, found = [], []
        for option in workload.options:
            against = self._against(workload, option)
            if against is None:
                kept.append(option)
            else:
                found.append(against)
        if kept:
            return Admission(tuple(worthwhile(kept, self._rules.marginal_efficiency)))
        nearest = min(found, key=lambda each: each.shortfall, default=None)
        return Admission((), _refusal(found), nearest.option if nearest else None)

    def limit(self, namespace: str) -> int | None:
        """Accelerators that a namespace may hold; None: all."""
        share = self._rules.namespace_shares.get(namespace)
        return None if share is None else math.floor(round(share * self._all, DIGITS))

    def _against(self, workload: Workload, option: Option) -> Against | None:
        if option.problem:
            return Against(option, option.problem, math.inf)
        return self._too_large(workload, option) or self._beyond_limits(workload, option)

    def _too_large(self, workload: Workload, option: Option) -> Against | None:
        if option.pool not in self._pools:
            return Against(option, "there is no such pool", math.inf)
        slots = self._most_pods(option)
        if slots < option.pods:
            within = f" in one {option.level}" if option.level else ""
            told = (
                f"needs {plural(option.pods, 'pod')} of {option.accelerators_per_pod}{within},"
                f" has room for {slots} when empty"
            )
            return Against(option, told, option.pods / slots if slots else math.inf)
        limit = self.limit(workload.namespace)
        if limit is not None and option.counted > limit:
            told = (
                f"needs {option.counted}, the share of namespace {workload.namespace}"
                f" is {limit} of {self._all}"
            )
            return Against(option, told, option.counted / limit if limit else math.inf)
        return None

    def _beyond_limits(self, workload: Workload, option: Option) -> Against | None:
        run = option.seconds
        if run is not None and workload.deadline is not None:
            left = workload.deadline - self._now
            if left <= 0:
                return Against(option, f"the deadline passed {duration(-left)} ago", math.inf)
            if run.mid > left:
                told = f"would take {duration(run.mid)}, the deadline is in {duration(left)}"
                return Against(option, told, run.mid / left)
        cost = option.cost
        most = workload.max_cost
        if cost is None or most is None or pays(most, cost):
            return None
        currency = self._rules.currency
        told = f"would cost {money(cost, currency)}, maxCost is {money(most, currency)}"
        return Against(option, told, cost / most if most else math.inf)

    def _most_pods(self, option: Option) -> int:
        """Pods like the option's that the emptied pool, or its largest domain, takes."""
        question = (option.pool, option.level)
        if question not in self._sizes:
            self._sizes[question] = _sizes(self._pools[option.pool].nodes, option.level)
        return max((_slots(sizes, option) for sizes in self._sizes[question]), default=0)


def worthwhile(options: Iterable[Option], marginal_efficiency: float) -> Iterable[Option]:
    """Without counts of a pool whose last accelerators do not yield their share.

    The share is of what one accelerator of the smallest count yields; growth that yields less is
    skipped, and a later count must pay for all accelerators since the last that was kept.
    """
    by_pool: dict[str, list[Option]] = {}
    for option in options:
        by_pool.setdefault(option.pool, []).append(option)
    for each in by_pool.values():
        if len({option.accelerators for option in each}) == 1:
            yield from each
            continue
        counts = _yielding(_fastest(each), marginal_efficiency)
        yield from (option for option in each if option.accelerators in counts)


def _fastest(options: Iterable[Option]) -> dict[int, float]:
    """Runs per second by count of accelerators; services count as equal."""
    found: dict[int, float] = {}
    for option in options:
        rate = 1.0 / option.seconds.mid if option.seconds and option.seconds.mid > 0 else 0.0
        found[option.accelerators] = max(rate, found.get(option.accelerators, 0.0))
    return dict(sorted(found.items()))


def _yielding(rates: Mapping[int, float], marginal_efficiency: float) -> set[int]:
    (taken, rate), *later = rates.items()
    if not rate:
        return set(rates)
    least, kept = marginal_efficiency * rate / max(taken, 1), {taken}
    for count, faster in later:
        if faster - rate >= least * (count - taken):
            taken, rate = count, faster
            kept.add(count)
    return kept


def _sizes(nodes: Iterable[NodeState], level: str) -> list[Counter[int]]:
    """Of each domain of the level, or of all nodes together: how many nodes there are by their
    accelerators, since most are alike."""
    if not level:
        return [Counter(node.total for node in nodes)]
    found: dict[str, Counter[int]] = {}
    for node in nodes:
        domain = node.domains.get(level)
        if domain:
            found.setdefault(domain, Counter())[node.total] += 1
    return list(found.values())


def _slots(sizes: Mapping[int, int], option: Option) -> int:
    """Pods that empty nodes of these sizes take."""
    each = max(option.accelerators_per_pod, 1)
    most = 1 if option.one_per_node else math.inf
    return sum(int(min(total // each, most)) * nodes for total, nodes in sizes.items())


def _refusal(against: Sequence[Against]) -> str:
    if not against:
        return "no pool is offered to it"
    ordered = sorted(against, key=lambda each: (each.shortfall, each.option.pool))
    by_pool = {each.option.pool: each for each in reversed(ordered)}
    named = sorted(by_pool.values(), key=lambda each: (each.shortfall, each.option.pool))
    told = "; ".join(f"{each.option.pool}: {each.reason}" for each in named[:REASONS_NAMED])
    more = len(named) - REASONS_NAMED
    return f"cannot run anywhere: {told}" + (
        f"; and {plural(more, 'more pool')}" if more > 0 else ""
    )
