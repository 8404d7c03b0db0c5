"""The AdmissionCheck within one pass: who was let in counts first, who asks is answered last."""

from __future__ import annotations

from collections.abc import Mapping

from poolwise.plan.decision import Key, Outcome, Plan
from poolwise.plan.kueue.answers import Desk
from poolwise.plan.kueue.guests import guests
from poolwise.plan.kueue.reading import books
from poolwise.plan.kueue.status import is_waiting
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.observed import CheckAnswer, Observed


def with_guests(ledger: Ledger, observed: Observed) -> Ledger:
    """What is left beside jobs that our check let in and no node has taken yet."""
    known = list(guests(observed))
    return _desk(ledger, observed).let_in(ledger, known) if known else ledger


def answers(
    ledger: Ledger, observed: Observed, outcomes: Mapping[Key, Outcome]
) -> dict[tuple[str, str], CheckAnswer]:
    """To all Workloads that wait for our check, on what the pass has left of ``ledger``."""
    known = list(guests(observed))
    if not known:
        return {}
    for plan in outcomes.values():
        if isinstance(plan, Plan) and plan.claim and not plan.kept and not is_waiting(plan):
            ledger = ledger.with_claim(plan.claim)
    return _desk(ledger, observed).answers(ledger, known)


def _desk(ledger: Ledger, observed: Observed) -> Desk:
    flavors = books(observed.queues).flavors
    return Desk(tuple(ledger.pools.values()), flavors)
