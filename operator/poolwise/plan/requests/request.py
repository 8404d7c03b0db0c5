"""What a workload asks for, as values: what is computed, and which places and limits it accepts.

Built once from the API object (:mod:`poolwise.plan.requests.reading`); nothing behind it sees a
spec again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from poolwise.model.work import Recompute, ServingWork, TrainingWork
from poolwise.plan.amounts import Amounts
from poolwise.plan.decision import Key


class Goal(enum.StrEnum):
    """What the choice among feasible places minimises."""

    TIME = "Time"
    """Training: of the whole run. Services: of one request."""
    COST = "Cost"
    """Training: of the whole run. Services: per hour of all replicas."""
    ENERGY = "Energy"
    """As cost, in joules."""


class Topology(enum.StrEnum):
    """How close to each other the nodes of a gang must be."""

    AUTO = "Auto"
    REQUIRED = "Required"
    PREFERRED = "Preferred"
    UNCONSTRAINED = "Unconstrained"


@dataclass(frozen=True, slots=True)
class Where:
    """Which places a workload accepts; empty sets accept all."""

    namespace: str
    products: frozenset[str] = frozenset()
    """Names of the shipped tables."""
    pools: frozenset[str] = frozenset()
    exclude_pools: frozenset[str] = frozenset()
    capacity_types: frozenset[str] = frozenset()
    topology: Topology = Topology.AUTO
    topology_level: str = ""
    """Node label of the fabric's level; empty: the nearest that has room."""
    avoided: tuple[tuple[str, str], ...] = ()
    """Pools where it did not start lately, each with a clause that says so."""


@dataclass(frozen=True, slots=True)
class PodResources:
    """What each pod asks of its node beside accelerators."""

    cores: float = 0.0
    memory_bytes: float = 0.0
    others: Amounts = ()

    @property
    def asks_more(self) -> bool:
        """Whether it asks for anything beside accelerators."""
        return bool(self.cores or self.memory_bytes or self.others)

    @property
    def other_names(self) -> tuple[str, ...]:
        """Of all else that it asks for; hardly any does."""
        return tuple(name for name, _ in self.others) if self.others else ()


@dataclass(frozen=True, slots=True)
class FixedLayout:
    """The parts of a layout that a user fixed; None is for the search to choose."""

    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    context: int | None = None
    zero_stage: int | None = None
    micro_batch_size: int | None = None
    recompute: Recompute | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What a run did before it was stopped, where it ran at all."""

    whole_steps: float
    """Of the whole run."""
    kept_steps: float
    """Done, and in a checkpoint."""
    spent: float
    """Money, in the currency of all costs."""
    lost_because: str
    """Why nothing is kept, as a clause; empty where something is."""

    def words(self) -> str:
        """Where it goes on from, in one clause."""
        if self.kept_steps:
            return (
                f"goes on from its last checkpoint, at step {self.kept_steps:,.0f}"
                f" of {self.whole_steps:,.0f}"
            )
        return f"its whole length is ahead, since {self.lost_because}"


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """One training run with its limits: of one that ran before, what is left of it."""

    work: TrainingWork
    """Its steps are those that are ahead."""
    fixed: FixedLayout
    least: int
    """Accelerators."""
    most: int
    where: Where
    goal: Goal
    deadline: datetime | None
    max_cost: float | None
    """What it may still cost."""
    pod: PodResources
    history: History | None = None
    """None: it never ran."""


@dataclass(frozen=True, slots=True)
class FixedReplica:
    """The parts of a replica that a user fixed; None is for the search to choose."""

    accelerators: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    quantization: str = "Auto"
    """``Auto``, ``None``, or the format of the weights."""
    kv_format: str = "bf16"
    """Of the cache."""
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ServingRequest:
    """One service with its limits."""

    work: ServingWork
    fixed: FixedReplica
    where: Where
    least_replicas: int
    most_replicas: int
    redundancy: int
    given_replicas: int | None
    """Where somebody else sets the number (scaling modes External and Off); at most
    ``most_replicas``."""
    goal: Goal
    max_cost_per_hour: float | None
    has_image: bool
    """Whether the spec names an image; else the engine must have a build for the hardware."""
    hub_id: str | None
    """Of the preset's weights on Hugging Face."""
    pod: PodResources
    arguments: tuple[str, ...] = ()
    """That the user gives the engine."""
    least_requests_per_second: float = 0.0
    """That a replica must bear where several pools share the load: a Service spreads it evenly."""
    live_replicas: int | None = None
    """What the load of a service that runs already asks for; None: not known."""
    running_replicas: int = 0
    """Of a service whose load is not known: so many stay, whatever the declared peak takes."""


Request = TrainingRequest | ServingRequest


@dataclass(frozen=True, slots=True)
class Priority:
    """What a PriorityClass says."""

    value: int = 0
    may_preempt: bool = True
    """Whether others may be stopped for it, where the administrator allows that at all."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object, in which version."""

    key: Key
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload that can be planned."""

    identity: Identity
    request: Request
    priority: Priority = Priority()
    created: datetime | None = None
    is_suspended: bool = False
    is_plan_only: bool = False
    """``mode: Plan``: decided and reported, never created."""
    start_timeout_seconds: float | None = None
    """Within which all pods must start; None: as the settings say."""
