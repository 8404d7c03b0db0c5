"""Placements that do not start: when they are given up, and what is left alone for a while then.

A gang whose pods have not all started in time gives its place up and is placed elsewhere; one that
ran once never is, whatever became of its pods. A service gives its place up where no pod of it ever
found a node. The pool is avoided by that workload for a pause that doubles, and where the nodes
that it waited for did not come, by nobody's new work that would have to wait for such nodes too.

Where the pool itself is deleted before any pod has a node, there is nothing to wait for: such a
placement is given up at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from poolwise.errors import InvalidInput
from poolwise.plan.decision import Key, Kind, PlacementRecord
from poolwise.plan.entries import Entry
from poolwise.plan.ledger.capacity_pods import owner_labels, owner_of
from poolwise.plan.ledger.growth import is_to_come
from poolwise.plan.observed import Object, Observed
from poolwise.plan.pool import Pool
from poolwise.plan.provisioning.attempts import GivenUp, given_up, latest, started_at
from poolwise.plan.provisioning.evidence import (
    Starting,
    bearers,
    is_refused_anywhere,
    startable_since,
    starting,
)
from poolwise.plan.reading import mapping, moment_of, name_of
from poolwise.plan.requests.reading import identity
from poolwise.plan.requests.request import Workload
from poolwise.settings import Settings


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A placement that did not start in time."""

    entry: Entry
    """Without its place, and keeping away from it."""
    attempt: GivenUp
    holder: Entry
    """With its place, which is nobody else's until its pods are gone."""


@dataclass(frozen=True, slots=True)
class FailedStarts:
    """What a pass has to know of starts that failed, before it places anything."""

    entries: tuple[Entry, ...]
    """Without those that are overdue; each keeps away from where it did not start."""
    pools: tuple[Pool, ...]
    """Grown by the nodes that may come."""
    overdue: tuple[FailedStart, ...] = ()
    look_again_at: datetime | None = None
    """When the next placement is overdue, or something may be tried again."""

    @property
    def holders(self) -> tuple[Entry, ...]:
        """All that hold what they run on."""
        return (*self.entries, *(each.holder for each in self.overdue))


def starts(
    observed: Observed,
    everything: Iterable[Entry],
    grown: Iterable[Pool],
    settings: Settings,
    now: datetime,
) -> FailedStarts:
    """Look at every placement; ``everything`` and ``grown`` as they are without any memory."""
    grown = tuple(grown)
    look = _Look.of(observed, grown, settings, now)
    avoiding = [look.avoiding(entry) for entry in everything]
    moments: list[datetime] = list(look.ends())
    overdue, entries = [], []
    for entry in avoiding:
        found = look.judged(entry)
        if isinstance(found, GivenUp):
            overdue.append(FailedStart(look.avoiding(_without_place(entry), found), found, entry))
            moments.append(found.until(settings))
        else:
            entries.append(entry)
            moments += [found] if found else []
    return FailedStarts(
        entries=tuple(entries),
        pools=tuple(map(look.growing, grown)),
        overdue=tuple(overdue),
        look_again_at=min((each for each in moments if each > now), default=None),
    )


def moment_words(moment: datetime) -> str:
    """``2026-11-22 12:40 UTC``."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _never_before(until: datetime) -> str:
    return f"not tried again before {moment_words(until)}"


class _Owned:
    """Pods by who has them, sorted where somebody is overdue."""

    def __init__(self, pods: Sequence[Object]) -> None:
        self._pods = pods

    @cached_property
    def by_owner(self) -> defaultdict[tuple[str, str, str] | None, list[Object]]:
        found: defaultdict[tuple[str, str, str] | None, list[Object]] = defaultdict(list)
        for pod in self._pods:
            found[owner_of(pod)].append(pod)
        return found


@dataclass(frozen=True, slots=True)
class _Look:
    settings: Settings
    now: datetime
    resources: Mapping[Key, Object]
    children: Mapping[str, Object]
    """By uid of the workload."""
    pods: _Owned
    attempts: Mapping[Key, tuple[GivenUp, ...]]
    born: Mapping[str, datetime]
    """Nodes."""
    pools: frozenset[str]
    """Names of those that there are."""
    nodes: frozenset[str]
    """The same."""

    @staticmethod
    def of(observed: Observed, known: Iterable[Pool], settings: Settings, now: datetime) -> _Look:
        resources = dict(_by_key(observed))
        attempts = {key: found for key, each in resources.items() if (found := given_up(each))}
        missed = any(each.has_missed_nodes for own in attempts.values() for each in own)
        born = dict(_births(observed.nodes)) if missed else {}
        children = bearers(observed.children)
        return _Look(
            settings,
            now,
            resources,
            children,
            _Owned(observed.pods),
            attempts,
            born,
            frozenset(pool.name for pool in known),
            frozenset(map(name_of, observed.nodes)),
        )

    def ends(self) -> Iterator[datetime]:
        """When places may be tried again."""
        for own in self.attempts.values():
            yield from (each.until(self.settings) for each in own)

    def avoiding(self, entry: Entry, more: GivenUp | None = None) -> Entry:
        """The entry with the places that it keeps away from."""
        own = latest([*self.attempts.get(entry.identity.key, ()), *([more] if more else [])])
        avoided = tuple(
            (pool, f"{each.clause}; {_never_before(each.until(self.settings))}")
            for pool, each in sorted(own.items())
            if each is more or each.until(self.settings) > self.now
        )
        if not avoided or not isinstance(entry.wanted, Workload):
            return entry
        request = entry.wanted.request
        kept_away = replace(request, where=replace(request.where, avoided=avoided))
        return replace(entry, wanted=replace(entry.wanted, request=kept_away))

    def judged(self, entry: Entry) -> GivenUp | datetime | None:
        """The attempt that is to be given up; else when it will have to be; None: never. What
        cannot be read any more keeps its place: nobody can tell of another."""
        record, child = entry.holds, self.children.get(entry.identity.uid)
        since = startable_since(child) if child else None
        if record is None or since is None or entry.state.is_paused:
            return None
        resource = self.resources[entry.identity.key]
        started = started_at(resource)
        if not _pods(record) or (started is not None and started >= since):
            return None
        is_readable = not isinstance(entry.wanted, InvalidInput)
        if is_readable and (lost := self._lost(entry.identity.key, record, since)):
            return lost
        limit = self._limit_seconds(entry)
        due = since + timedelta(seconds=limit)
        if due > self.now:
            return due
        return self._given_up(entry.identity.key, record, since, limit) if is_readable else None

    def _lost(self, key: Key, record: PlacementRecord, since: datetime) -> GivenUp | None:
        """The attempt whose pool was deleted before any pod of it had a node. Where a node that it
        counts on is there it may get it yet: another pool has it then."""
        if record.pool in self.pools or self.nodes & record.claim.nodes:
            return None
        found = starting(self.pods.by_owner[owner_labels(key)], since)
        return None if found.bound or found.started else self._attempt(key, record, since, found)

    def _given_up(
        self, key: Key, record: PlacementRecord, since: datetime, limit_seconds: float
    ) -> GivenUp | None:
        total = _pods(record)
        found = starting(self.pods.by_owner[owner_labels(key)], since)
        if key.kind is Kind.INFERENCE_SERVICE and found.bound:
            return None
        if found.started >= total or found.lacks_claim:
            return None
        if not found.exists and is_refused_anywhere(self.resources[key]):
            return None
        if found.bound >= total and found.is_held_up_by_itself:
            return None
        return self._attempt(key, record, since, found, limit_seconds)

    def _attempt(
        self,
        key: Key,
        record: PlacementRecord,
        since: datetime,
        found: Starting,
        limit_seconds: float = 0.0,
    ) -> GivenUp:
        total, earlier = _pods(record), latest(self.attempts.get(key, ())).get(record.pool)
        if earlier is not None and earlier.placed_at == since:
            return earlier  # given up already: its pods are about to be gone
        is_late = limit_seconds > 0.0
        return GivenUp(
            pool=record.pool,
            at=self.now.replace(microsecond=0),
            placed_at=since,
            started=found.started,
            pods=total,
            limit_seconds=limit_seconds,
            attempts=earlier.attempts + 1 if earlier else 1,
            has_missed_nodes=is_late
            and found.bound < total
            and any(map(is_to_come, record.claim.nodes)),
        )

    def _limit_seconds(self, entry: Entry) -> float:
        wanted = entry.wanted
        own = wanted.start_timeout_seconds if isinstance(wanted, Workload) else None
        return self.settings.start_timeout_seconds if own is None else own

    def growing(self, pool: Pool) -> Pool:
        """The pool with its nodes to come, unless the last that somebody waited for did not."""
        missed = self._missed(pool)
        if missed is None or pool.growth_problem is not None:
            return pool
        told = f"no node came within {missed.limit_words} when one was last waited for"
        return replace(
            pool,
            nodes=tuple(node for node in pool.nodes if not node.is_to_come),
            growth_problem=f"{told}; {_never_before(missed.until(self.settings))}",
        )

    def _missed(self, pool: Pool) -> GivenUp | None:
        found = latest(
            each
            for own in self.attempts.values()
            for each in own
            if each.pool == pool.name and each.has_missed_nodes
        ).get(pool.name)
        if found is None or found.until(self.settings) <= self.now:
            return None
        newest = (self.born.get(node.name) for node in pool.nodes)
        is_disproved = any(each is not None and each > found.placed_at for each in newest)
        return None if is_disproved else found


def _pods(record: PlacementRecord) -> int:
    return record.pods if record.replicas is None else record.replicas


def _without_place(entry: Entry) -> Entry:
    return replace(entry, state=replace(entry.state, record=None))


def _by_key(observed: Observed) -> Iterator[tuple[Key, Object]]:
    kinds = (
        (Kind.TRAINING_JOB, observed.training_jobs),
        (Kind.INFERENCE_SERVICE, observed.inference_services),
    )
    for kind, resources in kinds:
        for resource in resources:
            yield identity(resource, kind).key, resource


def _births(nodes: Iterable[Object]) -> Iterator[tuple[str, datetime]]:
    for node in nodes:
        metadata = mapping(node, "metadata")
        created = moment_of(metadata.get("creationTimestamp"))
        if created is not None:
            yield str(metadata.get("name")), created
