"""Candidates that were judged before, in a pool that has the same room as then.

Most passes find most pools as the last one left them. A candidate depends on its request, on its
pool and what is free there, on settings and constants, and on what was measured of its model: these
are compared once each, and not once for each pair. What changes with time alone (a deadline) is
judged anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from poolwise.plan.amounts import PODS
from poolwise.plan.candidates.alike import felt, is_common
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Request, TrainingRequest

Judge = Callable[[Request, Pool, Situation], Candidate]


@dataclass(frozen=True, slots=True)
class Recall:
    """What is remembered for one request."""

    request: Request
    situation: Situation
    subject: tuple[int, int] | None
    """Numbers of the request and of what is the same for all pools; None where time alone changes
    the answer."""
    is_measured: bool = False
    """Whether anything is known of its model, which may hold for one pool alone."""

    @staticmethod
    def of(request: Request, situation: Situation) -> Recall:
        """The memory for a request in a situation."""
        has_deadline = isinstance(request, TrainingRequest) and request.deadline is not None
        if has_deadline:
            return Recall(request, situation, None)
        numbers = situation.memo.numbers
        measured = situation.corrections.of_model(request.work.model, situation.now)
        apis = tuple(sorted(situation.apis.items()))
        frame = (situation.settings, situation.calibration, apis, measured)
        subject = numbers.of(request), numbers.of(frame)
        return Recall(request, situation, subject, bool(measured))

    def candidate(self, pool: Pool, judge: Judge) -> Candidate:
        """As ``judge`` has it, now or when it was last asked."""
        if self.subject is None:
            return judge(self.request, pool, self.situation)
        memo, subject = self.situation.memo, self.subject
        others = self.request.pod.other_names
        room = memo.rooms.page(self.situation.ledger).get(
            (pool.name, others), lambda: _fingerprint(pool, self.situation, (PODS, *others))
        )
        return memo.candidates.get((*subject, *room), lambda: self._judged(pool, subject, judge))

    def _judged(self, pool: Pool, subject: tuple[int, int], judge: Judge) -> Candidate:
        """As any other pool that the workload cannot tell from this one."""
        alike = None if self.is_measured else felt(self.request, pool, self.situation)
        if alike is None:
            return judge(self.request, pool, self.situation)
        memo, question = self.situation.memo, ("alike", *subject, alike)
        known: Candidate | None = memo.candidates.known(question)
        if known is not None:
            return replace(known, pool=pool.name)
        found = judge(self.request, pool, self.situation)
        if is_common(found, self.request, pool):
            memo.candidates.keep(question, found)
        return found


def _fingerprint(pool: Pool, situation: Situation, others: Sequence[str]) -> tuple[int, int]:
    """Numbers of the pool as it is, and of what is free on its nodes, of all else as far as it is
    asked for. Who holds the rest is told anew by who asks."""
    numbers, rooms = situation.memo.numbers, situation.ledger.rooms
    resource = pool.resource or ""
    free = tuple(
        (
            room.accelerators.get(resource, 0),
            room.cores,
            room.memory_bytes,
            *map((room.others or {}).get, others),
        )
        if (room := rooms.get(node.name))
        else None
        for node in pool.nodes
    )
    return numbers.of_newest(pool.name, pool), numbers.of((pool.name, free))
