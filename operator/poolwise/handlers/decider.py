"""The planner with everything that it needs beside what is observed."""

from __future__ import annotations

from poolwise.cluster import clock
from poolwise.handlers.isolation import Decide
from poolwise.model.calibration import shipped
from poolwise.plan.cluster import decide
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Decisions, Observed
from poolwise.settings import Settings
from poolwise.tables import load


def decider(settings: Settings) -> Decide:
    """:func:`poolwise.plan.cluster.decide` on the shipped tables, at the time of each call.

    :raises TableError: when a shipped table is malformed.
    """
    tables = load()
    calibration = shipped(tables)
    memo = Memo()

    def decide_now(observed: Observed) -> Decisions:
        return decide(observed, tables, settings, calibration, clock.utc_now(), memo)

    return decide_now
