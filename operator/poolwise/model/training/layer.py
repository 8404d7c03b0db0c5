"""Time of one micro-batch on one device: products, attention, everything elementwise, launches.

Each part of what there is to do (:mod:`poolwise.model.training.counts`) is held against both roofs
by itself, since attention and norms may be bound by memory while the products of the same layer are
bound by compute; the times then add, because the kernels run one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.roofline import Rates
from poolwise.model.shapes import Custom
from poolwise.model.training.counts import Counts, Part, counts
from poolwise.model.training.maturity import immaturity
from poolwise.model.training.rates import Reachable, alike, rates, reachable
from poolwise.model.training.shard import Shard
from poolwise.model.work import TrainingLayout, TrainingWork


@dataclass(frozen=True, slots=True)
class Pace:
    """What a device reaches in one run."""

    reached: Reachable
    slowdown: float
    """Of kernels that are young for it."""


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Busy:
    """Seconds of one device, by the roof that sets them, with the work behind them."""

    compute_seconds: float = 0.0
    memory_seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """Both together: kernels run one after the other."""
        return self.compute_seconds + self.memory_seconds

    def run(self, part: Part, speed: Rates, unhidden: float = 0.0) -> None:
        """Kernels that come on top: the longer of their two times, and the share of the shorter
        that does not hide behind it."""
        compute_seconds = part.flops / speed.flops_per_second
        memory_seconds = part.moved_bytes / speed.bytes_per_second
        if compute_seconds >= memory_seconds:
            memory_seconds *= unhidden
        else:
            compute_seconds *= unhidden
        self.compute_seconds += compute_seconds
        self.memory_seconds += memory_seconds
        self.flops += part.flops
        self.moved_bytes += part.moved_bytes

    def follow(self, other: Busy, share: float) -> None:
        """A share of what another is busy with comes on top."""
        self.compute_seconds += other.compute_seconds * share
        self.memory_seconds += other.memory_seconds * share
        self.flops += other.flops * share
        self.moved_bytes += other.moved_bytes * share

    def slowed(self, factor: float) -> Busy:
        """The same work in so many times the seconds."""
        return Busy(
            self.compute_seconds * factor,
            self.memory_seconds * factor,
            self.flops,
            self.moved_bytes,
        )

    def times(self, factor: float) -> Busy:
        """The same work so many times."""
        return Busy(
            self.compute_seconds * factor,
            self.memory_seconds * factor,
            self.flops * factor,
            self.moved_bytes * factor,
        )


def micro_batch(
    work: TrainingWork,
    layout: TrainingLayout,
    share: Shard,
    device: Device,
    calibration: Calibration,
) -> Busy:
    """Forward and backward of one micro-batch through the layers of the fullest stage."""
    return timed(counts(work, layout, share), pace(work, device, calibration))


def pace(work: TrainingWork, device: Device, calibration: Calibration) -> Pace:
    """Of one device. Raises InvalidInput where it does not compute in the work's precision."""
    if isinstance(work.model.shape, Custom):
        return Pace(alike(rates(work, device, calibration, "custom")), 1.0)
    return Pace(reachable(work, device, calibration), immaturity(work, device, calibration))


def timed(counted: Counts, at: Pace) -> Busy:
    """So much at one pace."""
    reached, body = at.reached, Busy()
    body.run(counted.dense, reached.products, reached.unhidden)
    if counted.experts is not None:
        grouped = reached.expert_rates(counted.tokens_per_group)
        body.run(counted.experts, grouped, reached.unhidden)
    body.run(counted.attention, reached.attention)
    kept_bytes = counted.kept_bytes + reached.scan_traffic * counted.scanned_bytes
    moved_bytes = reached.traffic * kept_bytes + counted.carried_bytes
    body.run(Part(0.0, moved_bytes), reached.products)
    _run_head(counted, reached, body)
    return body.slowed(at.slowdown)


def _run_head(counted: Counts, reached: Reachable, body: Busy) -> None:
    """What the head adds to the fullest stage: the last one may have fewer layers to make up."""
    head = Busy()
    head.run(counted.head, reached.wide)
    head.run(counted.loss, reached.wide)
    room_seconds = (1 - counted.last_stage_fill) * body.seconds
    if head.seconds > room_seconds:
        body.follow(head, (head.seconds - room_seconds) / head.seconds)
