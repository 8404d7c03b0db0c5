"""Prompts that wait for each other behind a router: simulated and by the law.

Fleets of a fixed size get requests by chance, with lengths that are drawn from a recorded trace.
How long first tokens take on average there is compared with the law of a replica behind a router
(:mod:`poolwise.model.serving.routing`), and with that of one by itself.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.autoscale import grid
from bench.autoscale.engine import Engine, engine
from bench.autoscale.replay import router_of
from bench.autoscale.scene import Routing
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, State, state_at_rate
from poolwise.model.serving.queueing import Lengths
from poolwise.model.serving.routing import Routed, met_share
from poolwise.model.work import Tokens
from poolwise.plan.scaling.capability import replica_under
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import Modelled
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Floats, Integers, Requests

TRACES = ("mooncake_conversation", "azure2023_code", "azure2023_conv")
REPLICAS = (2, 4, 10, 20)
BUSY = (0.2, 0.35, 0.5, 0.65)
"""Share of the time that a replica reads prompts."""
WARM_UP_SHARE = 0.1
"""Of the time, while the fleets fill."""
SEED = 1


@dataclass(frozen=True, slots=True)
class Met:
    """One fleet."""

    trace: str
    routing: Routing
    replicas: int
    busy: float
    answering: float
    """Requests of one replica that have their first token, on average."""
    simulated_seconds: float
    """To the first token, on average."""
    told_seconds: float
    by_chance_seconds: float
    """The same as if no router looked."""
    simulated_share: float
    """Of those who would find a prompt being read by chance: with so many the law of the queue
    tells what was simulated."""

    @property
    def error(self) -> float:
        """Of the law, as a share of what was simulated."""
        return self.told_seconds / self.simulated_seconds - 1.0

    @property
    def error_by_chance(self) -> float:
        """The same of one that knows of no router."""
        return self.by_chance_seconds / self.simulated_seconds - 1.0

    @property
    def bias(self) -> float:
        """Of all requests, those that the law has meet a prompt and the simulator has not."""
        told = met_share(self.busy, self.answering, _peers(self.routing, self.replicas))
        return self.busy * (told - self.simulated_share)


def compared(
    data: Path,
    seconds: float,
    traces: tuple[str, ...] = TRACES,
    replicas: tuple[int, ...] = REPLICAS,
    busy: tuple[float, ...] = BUSY,
    routing: Routing = Routing.LEAST_OUTSTANDING,
) -> Iterator[Met]:
    """Each trace's lengths with each fleet and load, for so long."""
    on = engine()
    for name in traces:
        lengths = grid.trace_of(data, name).requests
        served = _served(on, lengths)
        alone_seconds = _service_seconds(served)
        for share, count in itertools.product(busy, replicas):
            per_second = share / alone_seconds
            at = state_at_rate(served, per_second)
            if at is not None:
                arriving = _arriving(lengths, per_second * count, seconds)
                simulated = _simulated(on, arriving, count, routing)
                yield _met(name, routing, count, served, at, simulated)


def summary(found: Iterable[Met]) -> Iterator[str]:
    """A line for each trace."""
    for name, each in itertools.groupby(found, lambda met: met.trace):
        ours = list(each)
        errors = sorted(met.error for met in ours)
        by_chance = statistics.median(abs(met.error_by_chance) for met in ours)
        yield (
            f"prompts of {name} behind {ours[0].routing}, {len(ours)} fleets: mean first token by "
            f"the law {100 * errors[0]:+.0f} to {100 * errors[-1]:+.0f} % "
            f"(median {100 * statistics.median(map(abs, errors)):.1f} %, by chance "
            f"{100 * by_chance:.1f} %), and {100 * statistics.fmean(met.bias for met in ours):+.1f}"
            " % of requests too many meet a prompt"
        )


def _peers(routing: Routing, replicas: int) -> float:
    """That a request is chosen among."""
    return float(replicas) if routing is Routing.LEAST_OUTSTANDING else 1.0


def _served(on: Engine, lengths: Requests) -> Replica:
    """One replica, as the controller has it when it knows the lengths."""
    work = on.work(Tokens(1.0, 1.0), Tokens(1.0, 1.0), ())
    modelled = Modelled(work, on.layout, on.machine, on.calibration)
    mix = Mix(_moments(lengths.input_tokens), _moments(lengths.output_tokens))
    return replica_under(modelled, mix)


def _moments(tokens: Integers) -> Lengths:
    mean = float(tokens.mean())
    away = tokens / mean - 1.0
    return Lengths(mean, float((away**2).mean()), float((away**3).mean()))


def _service_seconds(served: Replica) -> float:
    """Of a prompt on a replica that has nothing else to do."""
    least = state_at_rate(served, 1e-6)
    assert least is not None
    return least.prompt_service_seconds


def _arriving(lengths: Requests, per_second: float, seconds: float) -> Requests:
    draw = np.random.default_rng(SEED)
    count = draw.poisson(per_second * seconds)
    picked = draw.integers(0, len(lengths), count)
    moments = np.sort(draw.random(count) * seconds)
    return Requests.of(moments, lengths.input_tokens[picked], lengths.output_tokens[picked])


def _simulated(on: Engine, arriving: Requests, replicas: int, routing: Routing) -> float:
    """Seconds to the first token, on average."""
    fleet = Fleet(arriving, on.costs, on.limits, router_of(routing, len(arriving), SEED))
    fleet.request(replicas, 0.0)
    fleet.finish()
    waited: Floats = fleet.answers().ttft_seconds(arriving)
    settled = arriving.arrival_seconds > WARM_UP_SHARE * arriving.arrival_seconds[-1]
    return float(np.nanmean(waited[settled]))


def _met(
    name: str, routing: Routing, count: int, served: Replica, at: State, simulated_seconds: float
) -> Met:
    told, by_chance = (
        latencies(replace(served, routed=Routed(each)), at).ttft.mean_seconds
        for each in (_peers(routing, count), 1.0)
    )
    return Met(
        name,
        routing,
        count,
        at.requests_per_second * at.prompt_service_seconds,
        at.in_flight,
        simulated_seconds,
        told,
        by_chance,
        _simulated_share(served, at, simulated_seconds - by_chance),
    )


def _simulated_share(served: Replica, at: State, saved_seconds: float) -> float:
    """By Pollaczek and Khinchine's mean wait at the rate of those who come to a busy replica.

    :param saved_seconds: of the mean first token, against one by itself (negative).
    """
    service = served.prompt.scaled(at.prompt_service_seconds)
    rate, mean = at.requests_per_second, service.mean_seconds
    square = service.variance_seconds2 + mean**2
    by_itself = rate * square / 2.0 / (1.0 - rate * mean)
    wait = max(by_itself + saved_seconds * served.slowness / served.first_token_slowness, 0.0)
    return 2.0 * wait / (rate * (square + 2.0 * wait * mean))
