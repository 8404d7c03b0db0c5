"""Services without any replica: their pool and shape are remembered, and hold no room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from poolwise.plan.entries import Entry
from poolwise.plan.pool import Pool


def with_places(entries: Iterable[Entry], pools: Iterable[Pool]) -> Iterator[Entry]:
    """The entries, where services without a replica forget a pool that is gone.

    Nodes of an idle pool go, and with the last one goes a pool that was discovered, or what is
    known of its hardware. A service that sleeps there is placed anew.
    """
    there = {pool.name for pool in pools if pool.machine is not None}
    for entry in entries:
        record = entry.holds
        is_empty = record is not None and record.replicas == 0 and not entry.parts
        if is_empty and record and record.pool not in there and not entry.state.is_paused:
            entry = replace(entry, state=replace(entry.state, record=None))
        yield entry
