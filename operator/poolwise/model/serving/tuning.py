"""The chunk of prompts that serves most inside the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.capacity import NOTHING, Capacity, highest, told
from poolwise.model.serving.climb import NOWHERE, PRECISION, Climb, Highest
from poolwise.model.serving.load import Replica
from poolwise.model.serving.memory import footprint, request_cache_bytes
from poolwise.model.serving.replica import (
    batch_limit,
    cache_slots,
    replica,
    resized,
    slot_bytes,
)
from poolwise.model.work import ServingLayout, ServingWork, Target

CHUNK_TOKENS = (8192, 4096, 2048, 1024, 512, 256)
"""Chunks worth trying: 8192 and 2048 are vLLM's defaults for large and small devices."""
PROBED = 0.25
"""Of the largest load: where chunks are compared to guess which is the best."""

Served = Callable[[ServingLayout], Replica]


@dataclass(frozen=True, slots=True)
class _Option:
    layout: ServingLayout
    served: Replica
    climb: Climb


def tuned(
    work: ServingWork,
    layout: ServingLayout,
    machine: Machine,
    calibration: Calibration,
    served_by: Served | None = None,
    chunks: Sequence[int] = CHUNK_TOKENS,
) -> tuple[ServingLayout, Capacity]:
    """The layout with the chunk of prompts that serves most inside the targets, and its capacity.

    A step that carries a chunk is the tail of the inter-token time, so a tight ITL target wants
    small chunks; everything else wants large ones. Only chunks that leave room for the cache of
    one longest request are considered; the layout comes back as it is when none does, and with the
    chunk whose lone request is nearest to its targets when none keeps them. Sequences are cut to
    the chunk: vLLM refuses to start with fewer batched tokens than sequences. Of chunks that serve
    alike, to the precision of a capacity, it is the largest.

    Who keeps :func:`replica` of each layout gives it as ``served_by``.

    :param chunks: that are tried, in tokens, the largest first.
    """
    of = served_by or partial(_replica, work, machine, calibration)
    options = list(_options(work, layout, machine, calibration, of, chunks))
    best, reached = NOWHERE, []
    for option in _likeliest_first(options, work.targets):
        worth = best.requests_per_second * (1.0 - PRECISION)
        found = option.climb.highest(best.load, worth)
        reached.append((option, found))
        best = max(best, found, key=lambda each: each.requests_per_second)
    least = best.requests_per_second * (1.0 - PRECISION)
    alike = [each for each in reached if each[1].requests_per_second >= least > 0.0]
    if not alike:
        nearest = min(options, key=lambda each: each.climb.strain(0.0), default=None)
        return nearest.layout if nearest else layout, NOTHING
    chosen, found = max(alike, key=lambda each: each[0].layout.max_batched_tokens)
    return chosen.layout, _by_itself(of(chosen.layout), chosen, found, work.targets)


def _by_itself(
    served: Replica, option: _Option, found: Highest, targets: tuple[Target, ...]
) -> Capacity:
    """With its own slowness: to compare chunks, those of the largest one's steps were enough."""
    if served != option.served:
        found = highest(served, targets, near=found.load)
    return told(served, targets, found)


def _replica(
    work: ServingWork, machine: Machine, calibration: Calibration, layout: ServingLayout
) -> Replica:
    return replica(work, layout, machine, calibration)


def _options(
    work: ServingWork,
    layout: ServingLayout,
    machine: Machine,
    calibration: Calibration,
    served_by: Served,
    chunks: Sequence[int],
) -> Iterator[_Option]:
    """The largest first, and none that serves just as a larger one."""
    longest = request_cache_bytes(work, layout, layout.max_model_tokens)
    per_request = slot_bytes(work, layout)
    served: Replica | None = None
    for chunk in chunks:
        sequences = min(layout.max_num_seqs, chunk)
        tried = replace(layout, max_batched_tokens=chunk, max_num_seqs=sequences)
        taken = footprint(work, tried, machine, calibration)
        if not taken.surely_holds(longest):
            continue
        larger = served
        if larger is None or layout.pipeline > 1:
            served = served_by(tried)
        else:
            limit, slots = float(batch_limit(work, tried)), cache_slots(taken, per_request)
            served = resized(larger, limit, slots, float(sequences))
        if served != larger:
            yield _Option(tried, served, Climb(served, work.targets))


def _likeliest_first(options: list[_Option], targets: tuple[Target, ...]) -> list[_Option]:
    """By how far they are from missing a target at one load; the largest chunk without a target
    for gaps between tokens, as they come."""
    if all(target.metric.is_from_arrival for target in targets):
        return options
    probe = PROBED * max((option.served.largest_load for option in options), default=0.0)
    return sorted(options, key=lambda option: option.climb.strain(probe))
