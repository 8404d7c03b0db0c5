"""What is known of one service between two looks, and what a look adds to it. Immutable values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from poolwise.model import correction
from poolwise.model.work import Target
from poolwise.plan.live.keeping import Record
from poolwise.plan.live.mismatch.cache import CacheRoom
from poolwise.plan.live.mismatch.detect import Circumstances, clues
from poolwise.plan.live.mismatch.history import History
from poolwise.plan.live.mismatch.watch import Watch
from poolwise.plan.live.overdue import Overdue
from poolwise.plan.live.remembering import read, written
from poolwise.plan.reading import Told, mapping, number
from poolwise.plan.scaling.decision import Decision, Remark
from poolwise.plan.scaling.learning import MOST_SLOWNESS
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, Seen

LOWERED_SECONDS = 600.0
"""For which fewer replicas have to be enough before drains of nodes may take more at once."""
JUDGED_SECONDS = 30.0
"""Between two searches for mismatches, which go through half an hour and take milliseconds."""
REWRITTEN_SECONDS = 60.0
"""Between two texts of what was learned, which take milliseconds to make."""


@dataclass(frozen=True, slots=True)
class Least:
    """Replicas that meet the targets now, spare ones apart: what drains must leave."""

    replicas: int | None = None
    """None: not known, since metrics are missing or nothing was decided."""
    lower_since_seconds: float | None = None

    def after(self, needed: int | None, now_seconds: float) -> Least:
        """Up at once, down once it has been lower for a while."""
        if needed is None or self.replicas is None or needed >= self.replicas:
            return Least(needed)
        since = now_seconds if self.lower_since_seconds is None else self.lower_since_seconds
        if now_seconds - since >= LOWERED_SECONDS:
            return Least(needed)
        return Least(self.replicas, since)


@dataclass(frozen=True)
class Knowledge:
    """Nothing yet, as it is made."""

    memory: Memory = field(default_factory=Memory)
    """The controller's own."""
    record: Record = field(default_factory=Record)
    """How targets are kept."""
    history: History = field(default_factory=History)
    watch: Watch = field(default_factory=Watch)
    judged_seconds: float = -math.inf
    """When mismatches were last looked for."""
    least: Least | None = None
    """None: too little was seen to tell, and no process before has told."""
    enough_since_seconds: float = math.inf
    """When looks had told enough to work the number out, with no failed one since."""
    text: str = ""
    """What of this is worth keeping over a restart."""
    text_seconds: float = -math.inf

    def after(
        self,
        seen: Seen,
        decision: Decision,
        overdue: Overdue,
        targets: Sequence[Target],
        place: Place,
    ) -> Knowledge:
        """With one look more, and what was decided by it."""
        now = seen.now_seconds
        ready = sum(each.phase is Phase.READY for each in seen.replicas)
        is_short = decision.replicas > ready
        elsewhere = {each.name for each in seen.replicas if each.pool != place.pool}
        here = [each for each in seen.replicas if each.name not in elsewhere]
        samples = {name: each for name, each in seen.samples.items() if name not in elsewhere}
        history = self.history.after(samples, here, now, is_short)
        slowness = decision.memory.log_slowness.get(place.pool, 0.0)
        known = Circumstances(targets, place.room, slowness, place.log_band, overdue)
        watch, judged = self.watch, self.judged_seconds
        if now - judged >= JUDGED_SECONDS:
            watch, judged = watch.after(clues(history, watch, known), now), now
        found = replace(
            self,
            memory=decision.memory,
            record=self.record.after(seen.samples, now),
            history=history,
            watch=watch,
            judged_seconds=judged,
            **self._least_after(seen, decision, place.redundancy),
        )
        is_new = found.watch.raised.keys() != self.watch.raised.keys()
        return found._with_text(now, is_new)

    def _least_after(self, seen: Seen, decision: Decision, redundancy: int) -> dict[str, Any]:
        """What was decided before enough was seen keeps what there is, whatever the load."""
        now, is_blind = seen.now_seconds, bool(seen.broken) or not seen.samples
        if not decision.memory.has_seen_enough and not is_blind:
            return {}
        since = min(self.enough_since_seconds, now)
        least = (self.least or Least()).after(needed(decision, redundancy, since), now)
        return {"least": least, "enough_since_seconds": math.inf if is_blind else since}

    def _with_text(self, now_seconds: float, is_new: bool) -> Knowledge:
        """Of a service without traffic what was learned while there was some."""
        is_idle = self.memory.idle_since_seconds is not None
        if not is_new and (is_idle or now_seconds - self.text_seconds < REWRITTEN_SECONDS):
            return self
        text = written(self.memory, self.watch, now_seconds)
        return replace(self, text=text, text_seconds=now_seconds)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the replicas are, as far as it says how they should behave; of a service on several
    pools the first: those on others are not judged."""

    pool: str
    room: CacheRoom
    log_band: float
    redundancy: int


_BLIND = (Remark.METRICS_BROKEN, Remark.METRICS_MISSING)


def needed(decision: Decision, redundancy: int, since_seconds: float = -math.inf) -> int | None:
    """Replicas that meet all targets by the latest decisions since then, before anything held them
    up.

    None where they are of several pools, since it matters which of them are left.
    """
    wanted = [each for at, each in decision.memory.wanted if at >= since_seconds]
    if sum(count > 0 for count in decision.by_pool.values()) > 1:
        return None
    if not wanted or any(each in decision.remarks for each in _BLIND):
        return None
    return max(math.ceil(max(wanted) - 1e-9) - redundancy, 1)


def recalled(status: Told, now_seconds: float, left: int | None = None) -> Knowledge:
    """What another process wrote into the status of a service (:attr:`Knowledge.text`); and the
    replicas that its disruption budget leaves, which that process had looked for longer to tell.

    Where there is nothing of the kind, or it is damaged, the speed that the placement goes by is
    all that is known.
    """
    scaling = mapping(status, "scaling")
    least = Least(left) if scaling and left is not None else None
    text = scaling.get("memory")
    found = read(text, now_seconds)
    if found is None:
        return Knowledge(Memory(log_slowness=_log_slowness(mapping(status, "plan"))), least=least)
    memory, watch = found
    return Knowledge(memory, watch=watch, least=least, text=str(text), text_seconds=now_seconds)


def _log_slowness(plan: Told) -> dict[str, float]:
    """ln(measured / predicted) time of a token on the pool of a plan, by services of its model."""
    corrected = mapping(plan, "correctedBy")
    pool, factor = plan.get("pool"), number(corrected, correction.Phase.TOKEN.value)
    if not pool or not factor or factor <= 0.0:
        return {}
    return {str(pool): math.log(min(max(factor, 1.0 / MOST_SLOWNESS), MOST_SLOWNESS))}
