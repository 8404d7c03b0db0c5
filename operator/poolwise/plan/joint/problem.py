"""What is to be placed: workloads with their options, pools with their nodes, and the rules.

Moments are seconds since any epoch that the caller keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.model.prediction import Interval

SERVICE_SECONDS = 86400.0
"""A service has no end: it is weighed as a run of a day, or for as long as others wait, if that is
less."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run one workload: a pool and a shape."""

    pool: str
    pods: int
    """All of them or none."""
    accelerators_per_pod: int
    seconds: Interval | None
    """Run time of what remains to be done; None: a service, which has no end."""
    cost_per_hour: float = 0.0
    """Of the whole workload."""
    objective: Interval | None = None
    """What the workload's goal minimises (seconds, money, joules); None: the seconds, and of a
    service the cost."""
    one_per_node: bool = False
    """Whether each pod has a node of its own; else they may share nodes."""
    level: str = ""
    """Node label: all pods go into one of its domains; empty: anywhere in the pool."""
    problem: str = ""
    """What forbids it for ever (memory, a target of latency), as a clause; empty: nothing."""
    shape: str = ""
    """For people: ``dp4 tp8``."""
    is_blocked: bool = False
    """Whether it cannot start now for what is not counted here (cores, memory and all
    else)."""
    is_on_cpu: bool = False
    """Whether its pool has no accelerators: those of its pods and nodes are thousandths of
    cores, and count for nobody's share."""

    @property
    def accelerators(self) -> int:
        """Of all pods."""
        return self.pods * self.accelerators_per_pod

    @property
    def counted(self) -> int:
        """Accelerators that count for the share of a namespace."""
        return 0 if self.is_on_cpu else self.accelerators

    @property
    def aim(self) -> float:
        """The middle of what the goal minimises."""
        if self.objective is not None:
            return self.objective.mid
        return self.cost_per_hour if self.seconds is None else self.seconds.mid

    @property
    def cost(self) -> float | None:
        """Of the whole run; None for a service."""
        return None if self.seconds is None else self.cost_per_hour * self.seconds.mid / 3600.0


def run_seconds(option: Option) -> float:
    """How long it holds its accelerators, in the middle of what is predicted."""
    return SERVICE_SECONDS if option.seconds is None else option.seconds.mid


@dataclass(frozen=True, slots=True)
class Running:
    """Where a workload runs now."""

    option: Option
    """Its ``seconds`` are what remains."""
    nodes: Mapping[str, int]
    """Pods by node. What they hold is not free."""
    since: float
    """When it started there."""
    restart_seconds: float = 0.0
    """What a move would lose: the work since the last checkpoint, and the restart."""
    is_movable: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, pending or running."""

    key: str
    namespace: str
    created: float
    options: tuple[Option, ...]
    """Any number per pool: several counts of accelerators, close together and spread."""
    priority: int = 0
    running: Running | None = None
    deadline: float | None = None
    max_cost: float | None = None
    may_preempt: bool = True
    """Whether others may be stopped for it, where the rules allow it at all."""
    is_expected: bool = False
    """Whether it gave up its place for a move that is not finished: it goes first among equals."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """One usable node."""

    name: str
    free: int
    """Accelerators that nobody holds."""
    total: int
    domains: Mapping[str, str] = field(default_factory=dict)
    """Value by label of the fabric's levels."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """Nodes that are alike."""

    name: str
    nodes: tuple[NodeState, ...]
    is_cpu: bool = False
    """Whether thousandths of cores stand for accelerators."""

    @property
    def total(self) -> int:
        """Accelerators, free or not."""
        return sum(node.total for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Rules:
    """What an administrator may set."""

    aging_seconds: float = 7 * 86400.0
    """Who has waited so long counts twice beside others of its priority, and twice again after as
    long. In replays a day made the mean time to completion half as long again as a week."""
    namespace_shares: Mapping[str, float] = field(default_factory=dict)
    """Most of all accelerators that a namespace may hold, 0 to 1; absent: all."""
    may_move: bool = False
    """Whether what runs may be moved."""
    may_preempt: bool = False
    """Whether what runs may be stopped for what has a higher priority."""
    move_margin: float = 1.5
    """A move must gain more than so many times what the restart loses."""
    settle_seconds: float = 3600.0
    """Nothing is moved within so long of its start or last move."""
    marginal_efficiency: float = 0.5
    """Of counts to choose from: the last accelerators must yield this share of the first ones."""
    time_limit_seconds: float = 0.5
    """For the optimiser."""
    currency: str = "USD"
    """Of all costs, for words."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a gang until it starts."""

    key: str
    option: Option
    starts: float


@dataclass(frozen=True, slots=True)
class Share:
    """What the time of a pool is worth beside another's."""

    of_all: float
    """Of the time of all who wait, that an accelerator-second takes (:mod:`.pricing`)."""
    done_seconds: float = math.inf
    """In which all is done that waits for the pool, and for those that share its load."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One moment of a cluster."""

    now: float
    pools: tuple[PoolState, ...]
    workloads: tuple[Workload, ...]
    rules: Rules = field(default_factory=Rules)
    reservations: tuple[Reservation, ...] = ()
    """Of the last plan: kept unless another place is clearly better."""
    shares: Mapping[str, Share] = field(default_factory=dict)
    """Of the last plan, for a pass in between that should not work them out again; empty: anew."""
