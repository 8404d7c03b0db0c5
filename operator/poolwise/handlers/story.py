"""The status of one workload, written when it differs, and the Events of its decisions."""

from __future__ import annotations

import time
from collections.abc import Iterable

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.difference import merge_patch
from poolwise.cluster.events import Recorder
from poolwise.cluster.resources import resource_of
from poolwise.cluster.store import name_of
from poolwise.cluster.writer import Writer
from poolwise.handlers.announcement import Announcement, announcements
from poolwise.handlers.looks import Looks
from poolwise.handlers.planner import Planner
from poolwise.handlers.seen import seen_of
from poolwise.plan.decision import Key, Outcome
from poolwise.plan.observed import Object
from poolwise.plan.status.accrual import brought_up_to_date
from poolwise.plan.status.workload import is_paused, status
from poolwise.settings import Settings


class Story:
    """Tells users what was decided and what is."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        planner: Planner,
        settings: Settings,
        looks: Looks,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._recorder = recorder
        self._planner = planner
        self._status_seconds = settings.status_seconds
        self._accrual_seconds = settings.accrual_seconds
        self._looks = looks
        self._told_at: dict[Key, float] = {}
        """Of the newest status, on a clock that never goes back, in seconds."""
        self._announced: dict[Key, set[tuple[str, Announcement]]] = {}
        """Events of a status that could not be written yet, with the uid of what they are about:
        the next attempt finds the same news in it."""

    async def tell(self, workload: Object, outcome: Outcome) -> None:
        """Write the status if it differs: decisions at once, observations now and then.

        A placement is a decision also where it makes no Event: its children wait to be told of.
        """
        live = self._cache.get(resource_of(workload), *name_of(workload))
        if live is None or live["metadata"]["uid"] != outcome.uid:
            return  # it went while its children were written
        before, now = live.get("status") or {}, utc_now()
        told = self._looks.measured(outcome.key, before)
        pools = self._planner.decisions.places
        after = status(live, outcome, pools, seen_of(self._cache, live), now, told)
        if not is_paused(live):
            after = brought_up_to_date(after, now, self._accrual_seconds)
        changes = merge_patch(before, after)
        decisions = list(announcements(before, after))
        is_decision = bool(decisions) or self._planner.is_fresh(outcome)
        if changes and not is_decision and self._is_too_soon(outcome.key):
            return self._planner.look_again(outcome.key, self._status_seconds)
        # Events first: whoever reads the status next, were it another leader, finds no news in it.
        await self._announce(outcome.key, live, decisions)
        if changes:
            self._told_at[outcome.key] = time.monotonic()
            await self._writer.patch(live, {"status": changes}, "status")
        self._announced.pop(outcome.key, None)
        self._planner.told(outcome)

    async def _announce(self, key: Key, live: Object, decisions: Iterable[Announcement]) -> None:
        announced, uid = self._announced.setdefault(key, set()), live["metadata"]["uid"]
        for each in decisions:
            is_told = (uid, each) in announced or await self._recorder.record(
                live, each.reason, each.note, warning=each.is_warning
            )
            if is_told:
                announced.add((uid, each))

    def forget(self, key: Key) -> None:
        """The workload is gone."""
        self._told_at.pop(key, None)
        self._announced.pop(key, None)

    def _is_too_soon(self, key: Key) -> bool:
        told_at = self._told_at.get(key)
        return told_at is not None and time.monotonic() - told_at < self._status_seconds
