"""Services without any replica, which hold nothing: their place is a shape, and no room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from poolwise.plan.entries import Entry
from poolwise.plan.pool import Pool


def with_places(entries: Iterable[Entry], pools: Iterable[Pool]) -> Iterator[Entry]:
    """Entries of which none is placed where it has nothing and there is nothing any more.

    Nodes of an idle pool go, and with the last one a pool that was discovered, or what is known of
    its hardware: what sleeps there is placed anew, with its first replica, as far as it may have
    any.
    """
    there = {pool.name for pool in pools if pool.machine is not None}
    for entry in entries:
        record = entry.holds
        is_empty = record is not None and record.replicas == 0 and not entry.parts
        if is_empty and record and record.pool not in there and not entry.state.is_paused:
            entry = replace(entry, state=replace(entry.state, record=None))
        yield entry
