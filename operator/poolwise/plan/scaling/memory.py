"""What the controller remembers from one decision to the next. Immutable values.

A controller that forgets everything (a restart without a record) holds until it has seen two looks,
and then knows the present load; what it learned of lengths, speeds and lateness comes back with
time, or at once from :meth:`Memory.as_mapping`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from poolwise.plan.scaling import gaps
from poolwise.plan.scaling.balance import Balance
from poolwise.plan.scaling.budget import Budget
from poolwise.plan.scaling.fragility import Belief, prior
from poolwise.plan.scaling.lone import Lone
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.momentum import Momentum
from poolwise.plan.scaling.persistence import Persistence
from poolwise.plan.scaling.service import Service
from poolwise.plan.scaling.surprise import Errors, none
from poolwise.plan.scaling.swings import Dispersion
from poolwise.plan.scaling.unevenness import Unevenness, even
from poolwise.plan.signals.sample import Histogram, Sample

LEAST_SECONDS = 29.0
"""Of looks before anything is decided."""
PRIOR_REQUESTS = 50.0
"""How many requests the declared lengths count as at first."""
YOUNG_SECONDS = 300.0
"""After the first look at a replica that told: what ended first were the short answers, and who is
late is no fault of what was decided."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Count and powers of lengths, fading: recent requests count more."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    @property
    def relative_square(self) -> float:
        """Mean of squares over the square of the mean: 1 where all are alike; 0: not told."""
        return self.squares * self.count / self.total**2 if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """Load between two looks."""

    at_seconds: float
    """Its end."""
    seconds: float
    arrivals: float
    """Requests that came, over all replicas."""
    foreseen: float = 0.0
    """Demand, in full replicas, for the time when a start would end, if what is there lasts."""
    expected: float = 0.0
    """The same as far as it does."""
    demand: float = 0.0
    """As it was then."""
    ready: float = 0.0
    """Replicas that served, as so many of the first pool."""
    waiting: float = 0.0
    """Requests in queues."""
    filled: float = 0.0
    """Of the demand: what was in flight."""
    capacity: float = 0.0
    """Requests per second of a full replica, as it was taken then: what demands are counted in."""
    growth: float = 0.0
    """Of what arrived, over the last start: ln(rate / rate before)."""
    kept_tokens: float = 0.0
    """By which caches grew, as far as who leaves has ended."""
    broken_off: float = 0.0
    """Requests that left without having ended."""


@dataclass(frozen=True, slots=True)
class Felt:
    """Load of one replica, in full ones, as its requests feel it."""

    now: float
    """Since the last look."""
    recent: float
    mean: float
    """Over the time that a request stays."""
    worst: float
    """Within the time that the longest stay, fading."""


@dataclass(frozen=True)
class Memory:
    """Nothing yet, as it is made."""

    samples: Mapping[str, Sample] = field(default_factory=dict)
    """The newest of each replica that was used."""
    met: frozenset[str] = frozenset()
    """Replicas that are there and were ever read."""
    waiting_again: Mapping[str, float] = field(default_factory=dict)
    """At each of them (:mod:`.preempted`)."""
    since_seconds: float | None = None
    """When the first replica told; None: none has yet. Long ago where it was read from a record."""
    idle_since_seconds: float | None = None
    """Since when nothing came and nothing ran; None: something does."""
    observed: Mapping[str, Histogram] = field(default_factory=dict)
    """What replicas told of each latency, fading."""
    bins: tuple[Bin, ...] = ()
    """Oldest first."""
    declared_requests: float = PRIOR_REQUESTS
    """What the declared lengths count as, fading with what was seen."""
    prompts: Moments = Moments()
    """Of requests that ended."""
    begun: Moments = Moments()
    """Prompts whose first token came, without their spread (:mod:`.kinds`)."""
    answers: Moments = Moments()
    answer_counts: tuple[float, ...] = ()
    """By their bucket (:mod:`.gaps`)."""
    finished: float = 0.0
    generated_tokens: float = 0.0
    """While so many finished; fading."""
    computed_share: float | None = None
    """Of prompt tokens: those that no prefix cache had."""
    context_tokens: float | None = None
    """Of a running sequence, by how full the caches are; fading."""
    mix: Mix | None = None
    """That capabilities were last worked out for."""
    log_slowness: Mapping[str, float] = field(default_factory=dict)
    """By pool: ln(observed time of a token / predicted one)."""
    belief: Belief = field(default_factory=prior)
    """How many requests are late at which load."""
    errors: Errors = field(default_factory=none)
    """How far demand was from what had been foreseen."""
    felt: Mapping[str, Felt] = field(default_factory=dict)
    """Load of each replica."""
    unevenness: Unevenness = field(default_factory=even)
    """Of these loads."""
    persistence: Persistence = field(default_factory=Persistence)
    """How far what was foreseen comes to pass."""
    momentum: Momentum = field(default_factory=Momentum)
    """How far arrivals that grew go on to grow."""
    cache_edge: float | None = None
    """The load at which caches would be full, by how full they are; fading. None: not told."""
    peak: float = 0.0
    """The highest demand there was, in full replicas, slowly forgotten."""
    budget: Budget = field(default_factory=Budget)
    lone: Lone = field(default_factory=Lone)
    """Who is late however many replicas there are."""
    usual_arrivals: float = 0.0
    """In a step, fading."""
    dispersion: Dispersion = field(default_factory=Dispersion)
    """Of arrivals."""
    balance: Balance = field(default_factory=Balance)
    """Of what replicas have in flight."""
    wanted: tuple[tuple[float, float], ...] = ()
    """(time, full replicas) of recent decisions, before anything held them up."""
    turns: tuple[float, ...] = ()
    """When scaling last changed from up to down."""
    direction: int = 0
    """Of the last change: 1 up, -1 down, 0 none yet."""
    raised_seconds: float | None = None
    """When more were last asked for; None: never yet."""
    leapt_seconds: float | None = None
    """When demand last leapt beyond all that ever came; None: never yet."""

    def mix_of(self, service: Service) -> Mix:
        """As it was seen, or declared."""
        return self.mix or service.first.predictor.prior_mix

    def age_seconds(self, now_seconds: float) -> float:
        """Since it began."""
        return 0.0 if self.since_seconds is None else now_seconds - self.since_seconds

    @property
    def has_seen_enough(self) -> bool:
        """For a number of replicas that follows from what was seen."""
        return sum(each.seconds for each in self.bins) >= LEAST_SECONDS

    def is_young(self, now_seconds: float) -> bool:
        """Whether it has seen too little: nothing is let go then."""
        return self.age_seconds(now_seconds) < YOUNG_SECONDS

    def has_leapt(self, now_seconds: float, lasting_seconds: float) -> bool:
        """Whether demand leapt no longer ago than that."""
        leapt = self.leapt_seconds
        return leapt is not None and now_seconds - leapt < lasting_seconds

    def calm_seconds(self, now_seconds: float) -> float:
        """Since more were asked for, or since it began."""
        since = self.since_seconds if self.raised_seconds is None else self.raised_seconds
        return 0.0 if since is None else now_seconds - since

    def as_mapping(self) -> dict[str, Any]:
        """What is worth keeping over a restart, for JSON; :meth:`read` reads it."""
        return {
            "declaredRequests": self.declared_requests,
            "prompts": list(astuple(self.prompts)),
            "begun": list(astuple(self.begun)),
            "answers": list(astuple(self.answers)),
            "answerCounts": list(self.answer_counts),
            "finished": self.finished,
            "generatedTokens": self.generated_tokens,
            "contextTokens": self.context_tokens,
            "computedShare": self.computed_share,
            "logSlowness": dict(self.log_slowness),
            "belief": self.belief.as_list(),
            "errors": self.errors.as_list(),
            "unevenness": self.unevenness.as_list(),
            "persistence": list(astuple(self.persistence)),
            "momentum": list(astuple(self.momentum)),
            "budget": list(astuple(self.budget)),
            "lone": self.lone.as_mapping(),
            "peak": self.peak,
            "usualArrivals": self.usual_arrivals,
            "dispersion": list(astuple(self.dispersion)),
            "balance": list(astuple(self.balance)),
            "turns": list(self.turns),
            "direction": self.direction,
            "raisedSeconds": self.raised_seconds,
            "leaptSeconds": self.leapt_seconds,
        }

    @staticmethod
    def read(document: Mapping[str, Any]) -> Memory:
        """What :meth:`as_mapping` made. ValueError, TypeError or KeyError for anything else."""
        share, context = document["computedShare"], document["contextTokens"]
        raised, leapt = map(document.get, ("raisedSeconds", "leaptSeconds"))  # younger than others
        return Memory(
            since_seconds=float("-inf"),
            declared_requests=float(document.get("declaredRequests", PRIOR_REQUESTS)),  # as well
            prompts=Moments(*map(float, document["prompts"])),
            begun=Moments(*map(float, document.get("begun", ()))),  # as well
            answers=Moments(*map(float, document["answers"][: len(fields(Moments))])),
            answer_counts=gaps.read(document.get("answerCounts", ())),  # as well
            finished=float(document["finished"]),
            generated_tokens=float(document["generatedTokens"]),
            context_tokens=None if context is None else float(context),
            computed_share=None if share is None else float(share),
            log_slowness={key: float(value) for key, value in document["logSlowness"].items()},
            belief=Belief.read(document["belief"]),
            errors=Errors.read(document["errors"]),
            unevenness=Unevenness.read(document["unevenness"]),
            persistence=Persistence(*map(float, document["persistence"])),
            momentum=Momentum(*map(float, document.get("momentum", ()))),  # as well
            budget=Budget(*map(float, document["budget"])),
            lone=Lone.read(document.get("lone", Lone().as_mapping())),  # as well
            peak=float(document["peak"]),
            usual_arrivals=float(document["usualArrivals"]),
            dispersion=Dispersion.read(document.get("dispersion", [])),  # as well
            balance=Balance(*map(float, document.get("balance", ()))),  # as well
            turns=tuple(map(float, document["turns"])),
            direction=int(document["direction"]),
            raised_seconds=None if raised is None else float(raised),
            leapt_seconds=None if leapt is None else float(leapt),
        )
