"""What a candidate is judged in: free capacity, the model's constants, what was measured, and
the moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.plan.amounts import ROUNDING_SLACK, left
from poolwise.plan.candidates.exclusions import Exclusion
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.groups import group_by_group
from poolwise.plan.candidates.waiting import Obstacle
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.decision import Claim, Key
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import Gang, Ledger, ledger
from poolwise.plan.ledger.growth import startup_seconds
from poolwise.plan.ledger.node_choice import Breakage
from poolwise.plan.memo import Memo
from poolwise.plan.pool import Pool
from poolwise.plan.wording import amount_of, gib, plural
from poolwise.settings import Settings


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything beside the request and the pool."""

    ledger: Ledger
    calibration: Calibration
    memo: Memo
    settings: Settings
    now: datetime
    corrections: Corrections
    """What was measured of workloads, beside what the model says."""
    ends: Mapping[Key, Interval] = field(default_factory=dict)
    """Seconds until what runs ends, by workload, where that is known."""
    unsaved_since: Mapping[Key, datetime] = field(default_factory=dict)
    """Since when runs have done what a stop would lose, where they tell."""
    apis: Mapping[str, str] = field(default_factory=dict)
    """Optional APIs that are served, as :attr:`Observed.apis`."""

    def with_ledger(self, ledger: Ledger) -> Situation:
        """The same moment with other capacity."""
        return replace(self, ledger=ledger)

    def with_claim(self, claim: Claim) -> Situation:
        """The same moment once a workload holds its claim."""
        return self.with_ledger(self.ledger.with_claim(claim))

    def without_claim(self, claim: Claim | None) -> Situation:
        """The same moment once a workload gave its claim back, if it holds any."""
        return self.with_ledger(self.ledger.without_claim(claim)) if claim else self

    def with_start(self, key: Key, claim: Claim, seconds: Interval | None) -> Situation:
        """The same moment once a workload holds its place, for so long where that is known."""
        ends = self.ends if seconds is None else {**self.ends, key: seconds}
        return replace(self.with_claim(claim), ends=ends)

    def nodes_for(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> dict[str, int] | None:
        """Nodes for all pods, those of a training run as close together as it wishes."""
        page = self.memo.rooms.page(self.ledger)
        question = (pool.name, gang, wish.levels, wish.must_share)
        return page.get(question, lambda: self._nodes_for(gang, pool, wish))

    def has_room(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> bool:
        """Whether :meth:`nodes_for` has any. Pods that need not be close fit where there is room
        for as many, and groups of pods may share nodes."""
        if wish.must_share or gang.group > 1:
            return self.nodes_for(gang, pool, wish) is not None
        return self.ledger.takes(pool, gang)

    def _nodes_for(self, gang: Gang, pool: Pool, wish: Wish) -> dict[str, int] | None:
        if wish.levels and 1 < gang.group < gang.pods:
            return group_by_group(self.ledger, pool, gang, wish)
        return self.ledger.fit(pool, gang, wish.levels, must_share=wish.must_share)

    def breaks(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> Breakage:
        """Domains of the accelerators' own link that stop being whole where it would go."""
        if not pool.link_level:
            return Breakage()
        return self.ledger.breaks(pool, gang, self.nodes_for(gang, pool, wish) or {})

    def may_run_out_of_pods(self, pool: Pool) -> bool:
        """Whether some node of it may, before its devices or cores do. Hardly any does."""
        names = self.memo.rooms.page(self.ledger).get("pods", self.ledger.takers_of_few_pods)
        return bool(names) and any(node.name in names for node in pool.nodes)

    def startup_seconds(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> float:
        """Until the nodes that it would go to have started; 0 where they are there, or where it
        has no room at all."""
        if not any(node.is_to_come for node in pool.nodes):
            return 0.0
        return startup_seconds(self.nodes_for(gang, pool, wish) or (), pool, self.settings)

    def why_never(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> Exclusion | None:
        """What the pool would lack even if all its nodes were usable and empty: then waiting has
        no end. None where the gang would fit."""
        nodes = tuple(replace(node, unusable_reason=None) for node in pool.nodes)
        whole = replace(pool, nodes=nodes)
        empty = self.with_ledger(ledger([whole], {}))
        if empty.nodes_for(gang, whole, wish) is not None:
            return None
        reason, shortfall = _too_large_pod(gang, whole) or empty._too_many_pods(gang, whole, wish)
        return Exclusion(Verdict.INSUFFICIENT_CAPACITY, reason, shortfall)

    def _too_many_pods(self, gang: Gang, pool: Pool, wish: Wish) -> tuple[str, float]:
        room = self.ledger.most_pods(pool, gang)
        if room < gang.pods:
            pods = plural(room, "pod" if gang.one_per_node else "replica")
            told = f"has room for at most {pods} like this, needs {gang.pods}"
            return told, gang.pods / max(room, 1)
        if wish.levels and not any(self.ledger.domains(pool, level) for level in wish.levels):
            return f"has no node with the label {_named(wish)}", math.inf
        nodes = plural(gang.pods, "node")
        return f"has no single domain of {_named(wish)} that takes {nodes}", math.inf

    def why_no_room(self, gang: Gang, pool: Pool, wish: Wish = ANYWHERE) -> str:
        """One sentence: what is missing, who holds it, and when that ends."""
        page, question = self.memo.obstacles.page(self.ledger, self.ends), (pool.name, gang, wish)
        return page.get(question, Obstacle(self.ledger, gang, pool, wish, self.ends).told)


def _named(wish: Wish) -> str:
    return " or ".join(wish.levels) or "the fabric, which no label describes,"


def _too_large_pod(gang: Gang, pool: Pool) -> tuple[str, float] | None:
    """What one pod asks beside accelerators and no node has, and by which factor."""
    cores = max((node.cores for node in pool.nodes), default=0.0)
    if gang.cores > cores * (1 + ROUNDING_SLACK):
        told = f"has {cores:g} cores on its largest node, each pod asks for {gang.cores:g}"
        return told, gang.cores / cores if cores else math.inf
    memory = max((node.memory_bytes for node in pool.nodes), default=0.0)
    if gang.memory_bytes > memory * (1 + ROUNDING_SLACK):
        told = f"has {gib(memory)} of memory on its largest node, each pod asks for "
        return told + gib(gang.memory_bytes), gang.memory_bytes / memory if memory else math.inf
    return _too_much_else(gang, pool)


def _too_much_else(gang: Gang, pool: Pool) -> tuple[str, float] | None:
    for name, each in gang.others:
        every = [left(node.others, name) for node in pool.nodes]
        largest = max((math.inf if has is None else has for has in every), default=0.0)
        if each > largest * (1 + ROUNDING_SLACK):
            told = f"has {amount_of(name, largest)} on its largest node, each pod asks for "
            return told + amount_of(name, each), each / largest if largest else math.inf
    return None
