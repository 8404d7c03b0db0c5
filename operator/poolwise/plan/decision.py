"""Values: a candidate, and the plan of one workload with every candidate that lost."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from poolwise.model.prediction import (
    Bottleneck,
    Interval,
    Memory,
    ServingPrediction,
    TrainingPrediction,
)
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.amounts import Held
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.kueue.record import Admission, Queueing
from poolwise.plan.nodes.labels import DEFAULT_CAPACITY_TYPE
from poolwise.plan.pool import Pool
from poolwise.plan.provisioning.attempts import GivenUp


class Kind(enum.StrEnum):
    """Kinds of workload."""

    TRAINING_JOB = "TrainingJob"
    INFERENCE_SERVICE = "InferenceService"


@dataclass(frozen=True, slots=True)
class Key:
    """Identity of a workload."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


Part = tuple[Key, str]
"""A service's replicas on a pool beyond the one that it is placed on."""
Holding = Key | Part


@dataclass(frozen=True, slots=True)
class CountOffer:
    """What one count of accelerators of a pool would make of a run, within its limits."""

    count: int
    layout: TrainingLayout
    seconds: Interval
    """Of the whole run."""
    cost_per_hour: float | None
    objective_value: float | None
    """As of :class:`Candidate`."""
    wish: Wish = ANYWHERE


@dataclass(frozen=True, slots=True)
class Candidate:
    """One pool at its best shape for one workload, feasible or not."""

    pool: str
    accelerator: str | None
    feasible: bool
    """Whether it could run there now: hardware, memory, targets, limits and free capacity."""
    reason: str
    """One sentence with the number that decides; for the chosen one, why it won."""
    reason_code: str
    """CamelCase: MemoryDoesNotFit, InsufficientCapacity, TargetUnreachable, UnknownHardware, ..."""
    waits: bool = False
    """Infeasible only for lack of free capacity: it may run there later."""
    count: int = 0
    """Accelerators of the job, or of one replica."""
    replicas: int | None = None
    weighed_replicas: int | None = None
    """By which it is compared: more than ``replicas`` where somebody set fewer than the targets
    need, or where nobody knows the load."""
    assumed_load: str = ""
    """What they are for then, as ``with one request under way``."""
    layout: TrainingLayout | ServingLayout | None = None
    prediction: TrainingPrediction | ServingPrediction | None = None
    """Where a target is out of reach, of one request."""
    memory: Memory | None = None
    """Where it is too little, what the smallest shape needs; else it is the prediction's."""
    bottleneck: Bottleneck | None = None
    cost_per_hour: float | None = None
    """Of the whole workload."""
    weighed_cost_per_hour: float | None = None
    """Serving: of the replicas by which it is compared."""
    total_cost: float | None = None
    """Training: of the whole run."""
    total_seconds: float | None = None
    """Training: of the whole run."""
    energy_joules: float | None = None
    """Training: of the run; serving: per hour."""
    lost_seconds: float | None = None
    """Training: the part of ``total_seconds`` that interruptions of spot nodes cost; None where
    nodes are its own."""
    objective_value: float | None = None
    """What the ranking minimises (seconds, money or joules)."""
    startup_seconds: float = 0.0
    """Until the nodes that it needs have started; 0 where it could run at once."""
    own_spread: float = 0.0
    """Deviation of its logarithm that the predictions for other pools do not share."""
    wish: Wish = ANYWHERE
    """How close to each other its nodes are to be."""
    broken_accelerators: int = 0
    """Free ones that share the accelerators' own link beyond the node, in a domain that is whole
    until this takes a part of it: what others pay for its being there."""
    offers: tuple[CountOffer, ...] = ()
    """Training, where it could run: every count to choose from, the smallest first."""
    capacity_type: str = DEFAULT_CAPACITY_TYPE
    """Terms of purchase of the pool's nodes."""
    too_few: str = ""
    """Clause: why the targets will be missed though it runs there: as many replicas as they need
    are not allowed, or find no room; empty where they are met."""
    price_problem: str | None = None
    """Why the pool's price cannot be compared (another currency); None: nothing is amiss."""
    doubt: str | None = None
    """Why the prediction deserves low confidence whatever its interval; None: nothing does."""
    chosen: bool = False
    shortfall: float = math.inf
    """Infeasible: what it needs over what there is (memory, money, time), so that 1.1 is a near
    miss; infinite where no number tells."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one placed workload holds of a pool, per node (:mod:`poolwise.plan.ledger.capacity`)."""

    key: Key
    pool: str
    accelerators_by_node: Mapping[str, int]
    cores_by_node: Mapping[str, float]
    memory_bytes_by_node: Mapping[str, float]
    resource: str | None = field(default=None, compare=False)
    """Extended resource of the accelerators, for when the pool is gone that would tell it."""
    others: Held = field(default_factory=dict)
    """All else, its pods included."""

    @property
    def nodes(self) -> set[str]:
        """All that it holds a part of."""
        held = {*self.accelerators_by_node, *self.cores_by_node, *self.memory_bytes_by_node}
        return held.union(*self.others.values())


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """What a placed workload runs as: all that its child objects are made from.

    It is written on the child (:mod:`poolwise.plan.records.placement_record`), so that a restarted
    operator knows what each workload holds and renders the same children again.
    """

    generation: int
    """Of the spec that was planned."""
    accelerator: str
    resource: str | None
    """Extended resource of the pods; None on CPU."""
    count: int
    """Accelerators of the job, or of one replica (0 on CPU)."""
    replicas: int | None
    layout: TrainingLayout | ServingLayout
    claim: Claim
    start_budget_seconds: int | None = None
    """Services: how long a replica may take until it serves."""
    drain_seconds: int | None = None
    """Services: how long requests in flight may take to finish."""
    memory_fraction: float | None = None
    """Services: share of the accelerator's memory that the engine may take."""
    kv_cache_bytes: int | None = None
    """Services on CPU: memory that the engine may fill with keys and values."""
    may_surge: bool = False
    """Services: whether the pool had room for one replica more, so that updates start first."""
    hub_id: str | None = None
    """Services: where the preset's weights are published, for specs without a ``uri``."""
    domain: Mapping[str, str] = field(default_factory=dict)
    """Jobs: the label that all nodes of the gang must carry, where the spec requires one."""
    queue: Queueing | None = None
    """Jobs: the queue of Kueue that the child waits in; None: it starts when it is made."""
    runtime: str | None = None
    """Kind of the child that runs the pods; None: a Job or a Deployment."""
    nodes_per_replica: int = 1
    """Services: nodes that one replica spans."""

    @property
    def training_layout(self) -> TrainingLayout:
        """Of a job: how it is laid over accelerators."""
        assert isinstance(self.layout, TrainingLayout), "a run has a training layout"
        return self.layout

    @property
    def serving_layout(self) -> ServingLayout:
        """Of a service: how a replica is laid over accelerators or cores."""
        assert isinstance(self.layout, ServingLayout), "a service has a serving layout"
        return self.layout

    @property
    def selector(self) -> Mapping[str, str]:
        """Labels of nodes that the pods ask for beside the pool's own."""
        return {**self.domain, **(self.queue.selector if self.queue else {})}

    @property
    def is_gated(self) -> bool:
        """Whether our admission gate holds its child back in Kueue's queue."""
        return self.queue is not None and self.queue.is_gated

    @property
    def pool(self) -> str:
        """Name of the pool that holds it."""
        return self.claim.pool

    @property
    def accelerators_per_pod(self) -> int:
        """Of a gang: what divides the claim of every node, since its pods are all alike."""
        return math.gcd(*self.claim.accelerators_by_node.values())

    @property
    def pods(self) -> int:
        """Of a gang."""
        return self.count // max(1, self.accelerators_per_pod)


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision for one workload, with its story."""

    key: Key
    uid: str
    generation: int
    placed: bool
    reason: str
    """One or two sentences with numbers: why here, or what it waits for."""
    reason_code: str
    chosen: Candidate | None
    """The winner; while waiting, the candidate it waits for; None when nothing can ever run it."""
    candidates: tuple[Candidate, ...]
    """Every pool, the chosen one included."""
    claim: Claim | None = None
    """Present exactly when placed."""
    kept: bool = False
    """True when the workload already runs where an earlier plan put it: then only ``claim`` and
    ``chosen.pool`` are current, and the story in its status stays as it was told."""
    record: PlacementRecord | None = None
    """What was written when it was placed: all that counts where ``kept``, and else (a service
    that is planned again) the source of what should not change without need."""
    may_surge: bool = False
    """Services: whether the pool still has room for one replica more once this one is placed."""
    hub_id: str | None = None
    """Services: id of the preset's weights on Hugging Face, for specs without a ``uri``."""
    domain: Mapping[str, str] = field(default_factory=dict)
    """Jobs: the label that all nodes of the gang must carry, where the spec requires one."""
    queue: Queueing | None = None
    """Jobs: the queue of Kueue that the child is to wait in; None: it starts when it is made."""
    admission: Admission | None = None
    """What Kueue says of the child, where it is in a queue; until quota is reserved, the claim is
    held by nobody."""
    vacates: bool = False
    """Whether it runs and is stopped, to run elsewhere or to make room for others."""
    given_up: GivenUp | None = None
    """The placement that did not start in time: its children go, and the next is found then."""
    is_significant: bool = True
    """False where the error of prediction may turn the order round, so that the cheaper was
    taken."""
    prices: tuple[ShadowPrice, ...] = ()
    """What the use of its candidates' pools costs everybody else; only pools that are scarce."""
    expected_start: datetime | None = None
    """While waiting: when it may start; None where nobody can tell."""
    steps_ahead: float | None = None
    """Jobs that ran before: what times, costs and energy are of; None: of the whole run."""
    parts: tuple[Plan, ...] = ()
    """Services: replicas on further pools, beside those of this plan, each with its own claim."""
    parts_asked: tuple[Plan, ...] = ()
    """The same of a service that only asks: nothing of it is ever made."""
    goes_on_as: Plan | None = None
    """Services that are planned again and find no place: what they run as, and hold, until then."""
    standstill: str | None = None
    """Of such a one: why the number of its replicas stays as it is; None: it follows the load."""

    @property
    def is_new(self) -> bool:
        """Whether this pass has placed it: it does not run there yet."""
        return self.placed and not self.kept

    @property
    def running(self) -> Plan | None:
        """By which its replicas run now; None of what does not run, or is still to be written."""
        return self if self.kept and self.placed else self.goes_on_as

    @property
    def has_place(self) -> bool:
        """Its own, or the one that it goes on in."""
        return self.placed or self.goes_on_as is not None

    @property
    def pool(self) -> str | None:
        """Name of the one that it holds a part of; None while it holds nothing."""
        return self.claim.pool if self.claim else None

    @property
    def replicas(self) -> int:
        """On its own pool."""
        return (self.chosen.replicas or 0) if self.chosen else 0

    @property
    def further_replicas(self) -> int:
        """On further pools together."""
        return sum(part.replicas for part in self.parts)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A spec that cannot be used at all (``Accepted=False``); it blocks nothing else."""

    key: Key
    uid: str
    generation: int
    reason_code: str
    reason: str
    """The sentence: field, value, what is allowed."""


Outcome = Plan | Rejection


def chosen_pool(outcome: Outcome, pools: Mapping[str, Pool]) -> Pool | None:
    """The pool that a plan is on, or waits for; None where it is gone, or there is no plan."""
    if not isinstance(outcome, Plan) or outcome.chosen is None:
        return None
    return pools.get(outcome.chosen.pool)


@dataclass(frozen=True, slots=True)
class Further:
    """A pool on which replicas of a service would meet all its targets."""

    candidate: Candidate
    """At its best replica."""
    room: int
    """For so many more of them now, on nodes that are there."""


@dataclass(frozen=True, slots=True)
class RoomToGrow:
    """Where a service that runs could have more replicas."""

    here: int
    """So many more in the pool that it is placed on, on nodes that are there."""
    elsewhere: tuple[Further, ...] = ()
