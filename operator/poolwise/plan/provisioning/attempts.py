"""Attempts to start that were given up, as ``status.start`` of a workload remembers them.

The status is the only memory: the operator writes it before it deletes the pods, and reads it again
after a restart. An entry that nobody can read any more is no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from poolwise.plan.conditions import timestamp
from poolwise.plan.reading import mapping, moment_of, objects
from poolwise.plan.wording import duration, plural, sentence
from poolwise.settings import Settings

FORGOTTEN_SECONDS = 3 * 86400.0
"""After which an attempt counts no more: the next one is the first again."""
MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Attempts to start in one pool, the last one in full."""

    pool: str
    at: datetime
    """When the last one was given up."""
    placed_at: datetime
    """Since when its pods could have started."""
    started: int
    """Pods of it that did."""
    pods: int
    limit_seconds: float
    """0 where it was given up at once, since its pool was deleted."""
    attempts: int
    """In a row."""
    has_missed_nodes: bool
    """Whether it waited for nodes to come."""

    def until(self, settings: Settings) -> datetime:
        """When the pool is tried again: later with each attempt, and never after the limit; one
        that was deleted as soon as it is there."""
        if self.has_lost_pool:
            return self.at
        doubled = settings.start_retry_seconds * 2 ** min(self.attempts - 1, MOST_DOUBLINGS)
        return self.at + timedelta(seconds=min(doubled, settings.start_retry_limit_seconds))

    @property
    def has_lost_pool(self) -> bool:
        """Whether its pool was deleted before any pod of it had a node."""
        return not self.limit_seconds

    @property
    def words(self) -> str:
        """``3 of 8 pods started within 30 min on h100-spot``."""
        if self.has_lost_pool:
            return f"AcceleratorPool {self.pool} is gone, and no pod of it had a node"
        return f"{self._counted} on {self.pool}"

    @property
    def _counted(self) -> str:
        return f"{self.started} of {plural(self.pods, 'pod')} started within {self.limit_words}"

    @property
    def clause(self) -> str:
        """The same of the pool: ``started 3 of 8 pods within 30 min``."""
        return f"started {self.started} of {plural(self.pods, 'pod')} within {self.limit_words}"

    @property
    def limit_words(self) -> str:
        """``30 min``."""
        return duration(self.limit_seconds)

    def document(self) -> dict[str, Any]:
        """As the status has it."""
        return {
            "pool": self.pool,
            "time": _text(self.at),
            "placedTime": _text(self.placed_at),
            "startedPods": self.started,
            "pods": self.pods,
            "timeoutSeconds": round(self.limit_seconds),
            "attempts": self.attempts,
            "nodesMissing": self.has_missed_nodes,
        }


def given_up(resource: Mapping[str, Any]) -> tuple[GivenUp, ...]:
    """What the status of a workload remembers, by pool."""
    found = map(_read, objects(resource, "status", "start", "givenUp"))
    return tuple(each for each in found if each is not None)


def started_at(resource: Mapping[str, Any]) -> datetime | None:
    """When all pods of its last placement that started had started."""
    return moment_of(mapping(resource, "status", "start").get("startedTime"))


def remembered(
    resource: Mapping[str, Any],
    attempt: GivenUp | None,
    ready_on: str | None,
    since: datetime | None,
    now: datetime,
) -> dict[str, Any]:
    """``status.start`` as it should be; empty where there is nothing to remember.

    :param attempt: what this pass gives up.
    :param ready_on: the pool on which all pods run now.
    :param since: since when the pods of the present placement could have started.
    """
    entries = {each.pool: each for each in given_up(resource) if _counts(each, now)}
    if attempt is not None:
        entries[attempt.pool] = attempt
    started = started_at(resource)
    if ready_on is not None:
        entries.pop(ready_on, None)
        if since is not None and (started is None or started < since):
            started = now
    document: dict[str, Any] = {"startedTime": _text(started)} if started else {}
    if entries:
        document["givenUp"] = [entries[pool].document() for pool in sorted(entries)]
    return document


def latest(attempts: Iterable[GivenUp]) -> dict[str, GivenUp]:
    """The newest of each pool."""
    ordered = sorted(attempts, key=lambda each: (each.at, each.pool))
    return {each.pool: each for each in ordered}


def _counts(attempt: GivenUp, now: datetime) -> bool:
    return now < attempt.at + timedelta(seconds=FORGOTTEN_SECONDS)


def _read(document: Mapping[str, Any]) -> GivenUp | None:
    at, placed_at = moment_of(document.get("time")), moment_of(document.get("placedTime"))
    numbers = list(_numbers(document, "startedPods", "pods", "timeoutSeconds", "attempts"))
    if at is None or placed_at is None or len(numbers) < 4 or not document.get("pool"):
        return None
    started, pods, limit, attempts = numbers
    return GivenUp(
        pool=sentence(str(document["pool"]), 63),
        at=at,
        placed_at=placed_at,
        started=started,
        pods=pods,
        limit_seconds=float(limit),
        attempts=max(1, attempts),
        has_missed_nodes=document.get("nodesMissing") is True,
    )


def _numbers(document: Mapping[str, Any], *names: str) -> Iterator[int]:
    for name in names:
        value = document.get(name)
        if isinstance(value, int) and value >= 0:
            yield value


def _text(when: datetime) -> str:
    return timestamp(when.astimezone(UTC))
