"""What the model answers: times with an interval, a ledger of terms, memory, and the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from poolwise.model.hardware import Resource

GROWTH = 1.1
"""Of a resource, for its gain."""
NINE_IN_TEN = 1.645
"""Standard deviations on either side that hold nine in ten of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A prediction and the range that holds the truth nine times in ten."""

    mid: float
    low: float
    high: float

    @staticmethod
    def around(mid: float, spread: float) -> Interval:
        """Of a value whose logarithm is normal with this deviation."""
        factor = math.exp(NINE_IN_TEN * spread)
        return Interval(mid, mid / factor, mid * factor)

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm; 0 for what is no positive number."""
        if not 0.0 < self.low <= self.high < math.inf:
            return 0.0
        return math.log(self.high / self.low) / (2.0 * NINE_IN_TEN)

    @property
    def inverse(self) -> Interval:
        """Of a rate the time, and the other way round."""
        return Interval(1.0 / self.mid, 1.0 / self.high, 1.0 / self.low)

    def scaled(self, factor: float) -> Interval:
        """The same in other units."""
        return Interval(self.mid * factor, self.low * factor, self.high * factor)


CHECKPOINT = "Checkpoint"
"""The term of writing checkpoints: steps are measured without it."""
OVERHEAD = "Overhead"
"""The term of what the host takes for a step, however little the device has to do."""


@dataclass(frozen=True, slots=True)
class Term:
    """One line of the ledger of time."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak memory of the fullest device, by use."""

    usable_bytes: float
    weights_bytes: float = 0.0
    gradients_bytes: float = 0.0
    optimizer_bytes: float = 0.0
    activations_bytes: float = 0.0
    kv_cache_bytes: float = 0.0
    reserve_bytes: float = 0.0
    """Communication buffers, allocator slack; the driver's context is no part of what is usable."""
    more_bytes: float = 0.0
    """What may be needed beyond all uses: up to the upper end of the range of nine in ten."""

    @property
    def needed_bytes(self) -> float:
        """Sum of all uses."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.kv_cache_bytes
            + self.reserve_bytes
        )

    @property
    def most_bytes(self) -> float:
        """The upper end of the need, which a placement is judged by."""
        return self.needed_bytes + self.more_bytes

    @property
    def fits(self) -> bool:
        """Whether the need is within what the device can give."""
        return self.needed_bytes <= self.usable_bytes


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The resource with the largest elasticity (api.md, "Bottleneck")."""

    resource: Resource
    gains: Mapping[Resource, float]
    """Relative gain in throughput (0.071 is 7.1 %) when that resource alone grows by 10 %."""

    def elasticity(self, resource: Resource) -> float:
        """Of the throughput to one resource, d ln(throughput) / d ln(resource); at least 0."""
        return math.log1p(max(self.gains.get(resource, 0.0), 0.0)) / math.log(GROWTH)


class Measured(NamedTuple):
    """What a correction follows from."""

    ratio: float
    """Median of what was measured over what was predicted,"""
    samples: int
    """and how many measurements it is of."""
    elsewhere: bool = False
    """Whether they are of other pools."""


@dataclass(frozen=True, slots=True)
class TrainingPrediction:
    """One optimizer step of one shape on one machine."""

    step_seconds: Interval
    ledger: tuple[Term, ...]
    """Sums to ``step_seconds.mid``."""
    memory: Memory
    samples_per_second: float
    tokens_per_second: float | None
    """None where tokens have no meaning (vision, custom models)."""
    arithmetic_intensity: float
    """FLOP per byte of device memory traffic of one step."""
    ridge_point: float
    """FLOP per byte where compute and memory bandwidth balance on this device."""
    power_watts: float
    """Per device."""
    provenance: str
    """measured | fitted | inherited | specification: where the efficiencies came from."""
    corrected_by: Mapping[str, float] = field(default_factory=dict)
    """Factors that the cluster's own measurements put on the times, by phase."""
    measured: Mapping[str, Measured] = field(default_factory=dict)
    """What those follow from, by phase."""
    own_spread: float | None = None
    """Deviation of ln(step) that other accelerators' predictions do not share; None: as the share
    of the interval that :mod:`poolwise.model.ranges` has."""
    fitted_spread: float = 0.0
    """Deviation of ln of the step's time before input and checkpoints, which the load and so the
    power follow: a step that waits for its input is as sure as that, its energy is not."""


@dataclass(frozen=True, slots=True)
class ServingPrediction:
    """One replica under a given request rate."""

    requests_per_second: float
    """The rate that the times below hold at."""
    capacity_requests_per_second: float
    """The highest rate at which every target still holds; 0 when none holds even unloaded."""
    ttft_seconds: Interval
    """0 for models that do not generate tokens, and so are their ``itl_seconds``."""
    itl_seconds: Interval
    e2e_seconds: Interval
    limiting: str
    """What stops the capacity: ``TTFT p99`` and the like, ``KV cache``, ``Batch`` (max_num_seqs) or
    ``Rate`` (prompts come faster than they are read)."""
    concurrency: float
    """Requests in flight at that rate."""
    ledger: tuple[Term, ...]
    """Seconds of one mean request at that rate (prefill, decode and their parts, queue)."""
    memory: Memory
    tokens_per_second: float | None
    arithmetic_intensity: float
    ridge_point: float
    power_watts: float
    provenance: str
    corrected_by: Mapping[str, float] = field(default_factory=dict)
    """As for training; rates and ledger are corrected too."""
    measured: Mapping[str, Measured] = field(default_factory=dict)
    tpot_seconds: Interval | None = None
    """None where no target is of it."""

    @property
    def generates(self) -> bool:
        """Whether there is a first token to wait for."""
        return self.ttft_seconds.mid > 0.0

    @property
    def mean_request_seconds(self) -> float:
        """From arrival to the end of the answer, on average: what the ledger sums to."""
        return sum(term.seconds for term in self.ledger)
