"""One replay of one policy, as a row of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.placement import bounds
from bench.placement.baselines import queueing
from bench.placement.baselines.fgd import least_fragmenting
from bench.placement.baselines.gavel_lp import GavelLp
from bench.placement.baselines.kueue import Kueue
from bench.placement.baselines.sia_ilp import SiaIlp
from bench.placement.ours import Ours
from bench.placement.scenario import Scenario
from poolwise.sim.jobs import Policy, Truth
from poolwise.sim.replay import replay

RESTART_SECONDS: Mapping[str, float] = {"B8": 20.0, "B9": 30.0}
"""Stopping and resuming: Gavel's leases (20 s), the restart that Sia's artefact takes (30 s)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One replay; None where a bound says nothing."""

    truth: str
    workload: str
    pools: str
    policy: str
    load: float
    seed: int
    mean_jct_seconds: float | None
    p99_jct_seconds: float | None = None
    makespan_seconds: float | None = None
    gpu_hours: float | None = None
    cost: float | None = None
    allocation_percent: float | None = None


Build = Callable[[Scenario, Truth, int], Policy]


def in_order(choose: queueing.Choose) -> Build:
    """A policy of one rule that needs nothing else."""
    return lambda scenario, truth, seed: queueing.InOrder(choose, truth)


POLICIES: Mapping[str, Build] = {
    "ours": lambda s, truth, seed: Ours(s.engine(seed)),
    "ours*": lambda s, truth, seed: Ours(s.told(seed)),
    "B0": lambda s, truth, seed: queueing.InOrder(queueing.at_random(seed), truth),
    "B1": in_order(queueing.first_fit),
    "B2": in_order(queueing.least_allocated),
    "B3": in_order(queueing.most_allocated),
    "B4": in_order(queueing.cheapest),
    "B4+": lambda s, truth, seed: queueing.InOrder(queueing.cheapest_run(truth), truth),
    "B5": lambda s, truth, seed: queueing.InOrder(queueing.fastest(truth), truth),
    "B6": lambda s, truth, seed: Kueue(s.tenants, truth),
    "B7": lambda s, truth, seed: queueing.InOrder(least_fragmenting(s.sizes), truth),
    "B8": lambda s, truth, seed: GavelLp(truth),
    "B9": lambda s, truth, seed: SiaIlp(truth),
}
BOUNDS = ("U1", "U2")
BESIDES = ("ours*", "B4+")
"""Told in tables and not in the JSON document: the planner told the true run times, and a rival
beyond what its product does."""


def cell(scenario: Scenario, policy: str, load: float, seed: int) -> Cell:
    """The row of a policy or a bound."""
    if policy in BOUNDS:
        return _bound(scenario, policy, load, seed)
    truth = scenario.seconds(seed)
    outcome = replay(
        scenario.jobs(load, seed),
        scenario.pools,
        truth,
        POLICIES[policy](scenario, truth, seed),
        RESTART_SECONDS.get(policy, 0.0),
    )
    return Cell(
        scenario.truth,
        scenario.workload,
        scenario.fleet,
        policy,
        load,
        seed,
        mean_jct_seconds=outcome.mean_completion_seconds,
        p99_jct_seconds=outcome.completion_seconds(99),
        makespan_seconds=outcome.makespan_seconds,
        gpu_hours=outcome.accelerator_hours,
        cost=outcome.cost,
        allocation_percent=outcome.allocation_percent,
    )


def _bound(scenario: Scenario, policy: str, load: float, seed: int) -> Cell:
    jobs, seconds = scenario.jobs(load, seed), scenario.in_pool(seed)
    prices = scenario.capacity(seed).prices
    given = jobs, seconds, scenario.pools
    rates = {pool.name: pool.price_per_accelerator_hour / 3600.0 for pool in scenario.pools}
    makespan = (
        bounds.least_makespan(*given, prices) if policy == "U1" else bounds.whole_makespan(*given)
    )
    names = [pool.name for pool in scenario.pools]
    return Cell(
        scenario.truth,
        scenario.workload,
        scenario.fleet,
        policy,
        load,
        seed,
        mean_jct_seconds=bounds.least_mean_completion(*given, prices),
        makespan_seconds=makespan,
        gpu_hours=sum(job.accelerators * min(seconds(job, name) for name in names) for job in jobs)
        / 3600.0,
        cost=sum(
            job.accelerators * min(rates[name] * seconds(job, name) for name in names)
            for job in jobs
        ),
    )
