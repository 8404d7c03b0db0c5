"""What a run came to, and what the simulator says of the same trace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from bench.autoscale.outcome import Outcome
from bench.autoscale.sizing import Targets
from e2e.autoscale.pods import Life
from e2e.images.load.replay import Replayed, Told
from poolwise.sim.serving.requests import Answers, Requests

ATTAINMENT_TOLERANCE = 0.05
"""Share of requests beyond the simulator's accounts; docs/autoscaling-live.md has what was seen."""
REPLICA_HOURS_TOLERANCE = 0.08
"""Share of the replica-hours, likewise."""
LATEST_SECONDS = 0.5
"""Of the machine, which is to blame for more: a quarter of the TTFT target that is replayed."""
FAULTS_SHOWN = 5

Fleet = tuple[tuple[float, int], ...]
"""(seconds since the trace began, replicas asked for), whenever these changed."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run, without its warm-up."""

    attainment: float
    """Share of requests that met both targets; one without an answer met neither."""
    ttft_attainment: float
    itl_attainment: float
    replica_hours: float
    average_replicas: float
    most_replicas: float
    left_replicas: float
    """That were told to end while requests came."""
    p99_ttft_seconds: float
    p99_tpot_seconds: float
    requests: float
    errors: float = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Live beside simulated."""

    live: Figures
    simulated: Figures
    """Mean of the simulator's accounts, which differ by the moment between two decisions at which
    the trace begins."""
    least: Figures
    """Of these accounts, each figure by itself."""
    most: Figures
    start_seconds: float
    """From the request of a replica until it was ready: median of the run, and the simulator's."""
    late_seconds: float
    """99th percentile of what the machine was late with requests or looks at answers."""
    lives: tuple[Life, ...] = ()
    """Of the live run's pods, in seconds since the trace began."""
    faults: tuple[str, ...] = ()
    """Of the live run's failed requests: when each was sent, and what its client saw."""
    accounts: tuple[Fleet, ...] = ()
    """Of the simulator."""

    @property
    def attainment_gap(self) -> float:
        """Of the live run above the simulated one."""
        return self.live.attainment - self.simulated.attainment

    @property
    def replica_hours_gap(self) -> float:
        """The same, as a share of the simulated ones."""
        return self.live.replica_hours / self.simulated.replica_hours - 1.0

    @property
    def complaint(self) -> str:
        """Why the run tells nothing of the operator; empty when it does."""
        if self.late_seconds <= LATEST_SECONDS:
            return ""
        return (
            f"the machine did not keep up with the trace: requests were sent, or answers seen, "
            f"{self.late_seconds:.2f} s late (p99), allowed are {LATEST_SECONDS:g} s"
        )

    def differences(self, slack: float = 1.0) -> list[str]:
        """What no account of the simulator foresaw; empty where live is as simulated.

        :param slack: so many times the tolerances, where others may take the processor away from
            the engines.
        """
        met = _beyond(self.live.attainment, self.least.attainment, self.most.attainment)
        hours = self.live.replica_hours
        paid = _beyond(hours, self.least.replica_hours, self.most.replica_hours)
        found = []
        if abs(met) > slack * ATTAINMENT_TOLERANCE:
            found.append(f"attainment {met:+.1%} beyond every account")
        if abs(paid) > slack * REPLICA_HOURS_TOLERANCE * self.simulated.replica_hours:
            found.append(f"replica-hours {paid:+.4f} beyond every account")
        if self.live.errors:
            found.append(f"{self.live.errors} requests failed")
        return found

    def document(self) -> dict[str, object]:
        """As JSON."""
        gaps = {"attainment": self.attainment_gap, "replica_hours": self.replica_hours_gap}
        return {**asdict(self), "gaps": gaps, "complaint": self.complaint}

    def __str__(self) -> str:
        """A table and a line."""
        rows = [
            f"{'':18}{'live':>10}{'simulated':>11}{'least':>10}{'most':>10}",
            *(self._row(each.name) for each in fields(Figures)),
            f"attainment {self.attainment_gap:+.1%}, replica-hours {self.replica_hours_gap:+.1%}; "
            f"a start took {self.start_seconds:.1f} s, the machine was late by "
            f"{self.late_seconds:.3f} s (p99)",
        ]
        said = (*filter(None, [self.complaint]), *self.faults[:FAULTS_SHOWN])
        asked = [_told("live", fleet_of(self.lives))] if self.lives else []
        asked += [_told("simulated", each) for each in self.accounts]
        return "\n".join([*rows, *said, *asked])

    def _row(self, name: str) -> str:
        live, *others = (
            getattr(each, name) for each in (self.live, self.simulated, self.least, self.most)
        )
        mean, least, most = (f"{each:.4g}" for each in others)
        return f"{name:18}{live:>10.4g}{mean:>11}{least:>10}{most:>10}"


def _told(who: str, fleet: Fleet) -> str:
    return f"{who} asked for " + ", ".join(f"{count} at {at:.0f} s" for at, count in fleet)


def fleet_of(lives: Iterable[Life]) -> Fleet:
    """Of pods, their lives counted from when the trace began."""
    born = [(life.born_seconds, 1) for life in lives]
    left = [(life.left_seconds, -1) for life in lives if life.left_seconds is not None]
    changes = sorted(born + left)
    counts = itertools.accumulate(change for _, change in changes)
    return tuple((moment, count) for (moment, _), count in zip(changes, counts, strict=True))


def fleet_in(outcome: Outcome, first: int, begin: float) -> Fleet:
    """Of an account that began with ``first``, in which the trace begins at ``begin``."""
    found = [(-begin, first)]
    for step in outcome.steps:
        if step.wanted != found[-1][1]:
            found.append((step.at_seconds - begin, step.wanted))
    return tuple(found)


def faults(told: Iterable[Told]) -> tuple[str, ...]:
    """Of the requests that failed, in words."""
    return tuple(f"sent at {each.sent_seconds:.1f} s: {each.error}" for each in told if each.error)


def since(began_seconds: float, lives: Sequence[Life]) -> tuple[Life, ...]:
    """With moments counted from another one."""

    def shifted(moment: float | None) -> float | None:
        return None if moment is None else round(moment - began_seconds, 2)

    return tuple(
        replace(
            life,
            born_seconds=round(life.born_seconds - began_seconds, 2),
            ready_seconds=shifted(life.ready_seconds),
            leaving_seconds=shifted(life.leaving_seconds),
            gone_seconds=shifted(life.gone_seconds),
        )
        for life in lives
    )


def _beyond(value: float, least: float, most: float) -> float:
    """How far it is above the most, or below the least; 0 between."""
    return max(value - most, 0.0) + min(value - least, 0.0)


def combined(of: Sequence[Figures], how: Callable[[Sequence[float]], float]) -> Figures:
    """Each figure by itself."""
    return Figures(*(how([getattr(one, each.name) for one in of]) for each in fields(Figures)))


def simulated(outcome: Outcome, fleet: Fleet, begin: float, end: float) -> Figures:
    """The simulator's account of such a fleet, scored from begin to end of its trace."""
    wanted = [count for at, count in fleet if at <= begin][-1:]
    wanted += [count for at, count in fleet if begin < at <= end]
    return Figures(
        attainment=outcome.attainment,
        ttft_attainment=outcome.ttft_attainment,
        itl_attainment=outcome.itl_attainment,
        replica_hours=outcome.replica_hours,
        average_replicas=outcome.average_replicas,
        most_replicas=max(wanted),
        left_replicas=sum(max(had - has, 0) for had, has in itertools.pairwise(wanted)),
        p99_ttft_seconds=outcome.p99_ttft_seconds,
        p99_tpot_seconds=outcome.p99_tpot_seconds,
        requests=outcome.requests,
        errors=outcome.refused,
    )


def live(
    requests: Requests,
    replayed: Replayed,
    lives: Sequence[Life],
    warm_up_seconds: float,
    targets: Targets,
) -> Figures:
    """Scored and paid for as in :mod:`bench.autoscale.outcome`: requests that arrive after the
    warm-up, replicas from then to the last arrival. A request counts from when it was sent.
    """
    end = float(requests.arrival_seconds[-1])
    answers = _answers(requests, replayed.requests)
    first, tokens = targets.met(requests, answers)
    scored = requests.arrival_seconds >= warm_up_seconds
    began = replayed.began_seconds
    begin, until = began + warm_up_seconds, began + end
    paid = sum(life.seconds_within(begin, until) for life in lives)
    return Figures(
        attainment=float((first & tokens)[scored].mean()),
        ttft_attainment=float(first[scored].mean()),
        itl_attainment=float(tokens[scored].mean()),
        replica_hours=paid / 3600.0,
        average_replicas=paid / (until - begin),
        most_replicas=_most(lives, begin, until),
        left_replicas=sum(begin < (life.leaving_seconds or 0.0) <= until for life in lives),
        p99_ttft_seconds=_p99(answers.ttft_seconds(requests)[scored]),
        p99_tpot_seconds=_p99(answers.tpot_seconds(requests)[scored]),
        requests=int(scored.sum()),
        errors=sum(bool(each.error) for each in replayed.requests),
    )


def _answers(requests: Requests, told: Sequence[Told]) -> Answers:
    """As the simulator tells them: a request that was sent late was late by itself."""

    def moments(name: str) -> list[float]:
        found = ((getattr(each, name), each) for each in told)
        return [
            float("nan")
            if moment is None or each.error
            else moment - (each.sent_seconds - each.planned_seconds)
            for moment, each in found
        ]

    return Answers(
        np.array(moments("first_seconds")),
        np.array(moments("end_seconds")),
        np.zeros(len(requests), np.int64),
    )


def _most(lives: Sequence[Life], begin: float, end: float) -> int:
    """Replicas at the same time, those on their way out apart."""
    stays = [(life.born_seconds, min(life.left_seconds or end, end)) for life in lives]
    moments = [begin, *(born for born, _ in stays if begin <= born <= end)]
    return max(sum(born <= moment < left for born, left in stays) for moment in moments)


def _p99(seconds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = np.where(np.isnan(seconds), np.inf, seconds)
    return float(np.quantile(known, 0.99, method="higher"))
