"""Loads of replicas: few arrivals tell little of a rate."""

import math
from dataclasses import replace

import numpy as np
import pytest

from poolwise.plan.scaling import fragility
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.evidence import evidence
from poolwise.plan.scaling.felt import cache_edge, felt
from poolwise.plan.scaling.fragility import Lateness
from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.memory import Felt, Memory
from tests.plan.scaling.given import STEP_SECONDS, Fleet, service

GIVEN = service()
POOL = GIVEN.pools[0]
EVEN, UNEVEN = 0.01, 0.25
"""Variances of ln(load)."""


@pytest.fixture(scope="module")
def of_arrivals():
    """One whose load is what arrives."""
    able = capability(POOL.predictor, POOL.predictor.prior_mix, GIVEN.targets, 1.0)
    return {POOL.name: replace(able, arrivals_share=1.0)}


def looks(counts, steps=1):
    """So many requests at each replica in each step, one after another."""
    fleet, memory = Fleet.of(len(counts)), Memory()
    for step in range(steps + 1):
        taken = intake(memory, fleet.seen(STEP_SECONDS * step, 0.0), {})
        memory = replace(memory, samples=taken.samples)
        fleet = replace(
            fleet, counts=tuple(a + b for a, b in zip(fleet.counts, counts, strict=True))
        )
    return taken


def loads(counts, able, log_variance):
    found = felt({}, looks(counts), able, log_variance)
    return np.array([each.now for each in found.values()])


def test_what_chance_explains_is_no_difference(of_arrivals):
    few = loads([0.0, 2.0, 4.0], of_arrivals, EVEN)
    assert few[2] / few[0] < 1.1
    many = loads([1000.0, 2000.0, 3000.0], of_arrivals, EVEN)
    assert many[2] / many[0] == pytest.approx(3.0, rel=0.1)


def test_where_replicas_do_differ_few_requests_tell_of_it(of_arrivals):
    even, uneven = (loads([2.0, 6.0], of_arrivals, each) for each in (EVEN, UNEVEN))
    assert uneven[1] / uneven[0] > 1.5 * even[1] / even[0]


def test_the_load_of_all_together_stays(of_arrivals):
    told = loads([1.0, 2.0, 6.0], of_arrivals, EVEN)
    capacity = of_arrivals[POOL.name].requests_per_second
    assert told.sum() == pytest.approx(9.0 / STEP_SECONDS / capacity)


def test_what_is_in_flight_is_counted_and_needs_no_guess(of_arrivals):
    filled = {POOL.name: replace(of_arrivals[POOL.name], arrivals_share=0.0)}
    one, other = (loads([1.0, 2.0, 6.0], filled, each) for each in (EVEN, UNEVEN))
    assert one == pytest.approx(other)


@pytest.mark.parametrize(
    ("log_variance", "least", "most"), [(EVEN, 0.8, 1.1), (1e9, 2.0, math.inf)]
)
def test_the_edge_is_found_through_noise(of_arrivals, log_variance, least, most):
    """An even fleet whose replicas get two requests a look when they are full: each is late by the
    load of the fleet, whatever its own replica happened to get. Taken at their word the counts
    would spread over loads that no replica bore, and hide the edge."""
    able = of_arrivals[POOL.name]
    full = replace(able, slowness=able.at.requests_per_second * STEP_SECONDS / 2.0)
    random, belief = np.random.default_rng(0), fragility.prior()
    for load in (0.8, 1.0, 1.2) * 30:
        late_share = 1.0 / (1.0 + 99.0 * load**-10.0)
        counts = random.poisson(2.0 * load, 20).astype(float)
        found = felt({}, looks(list(counts)), {POOL.name: full}, log_variance)
        told = [
            (each, Lateness(late_share * count, count))
            for each, count in zip(found.values(), counts, strict=True)
            if count
        ]
        belief = fragility.observed(belief, evidence(told, 0.5), 0.01)
    assert least < fragility.summary(belief)[0] < most


@pytest.mark.parametrize(("seconds", "share"), [(5.0, 1 / 3), (15.0, 1.0), (30.0, 1.0)])
def test_the_load_of_the_moment_is_that_of_a_usual_look(of_arrivals, seconds, share):
    """However often there is one: in a few seconds chance alone makes rises."""
    fleet, memory = Fleet.of(1), Memory()
    before = {"0": Felt(0.0, 0.0, 0.0, 0.0)}
    taken = intake(memory, fleet.seen(0.0, 0.0), {})
    fleet = replace(fleet, counts=(4.0 * seconds,))
    taken = intake(replace(memory, samples=taken.samples), fleet.seen(seconds, 0.0), {})
    (name,) = taken.by_replica
    new = felt({}, taken, of_arrivals, UNEVEN)[name]
    assert felt({name: before["0"]}, taken, of_arrivals, UNEVEN)[name].now == pytest.approx(
        share * new.now
    )


@pytest.mark.parametrize("is_of_prompts", [True, False])
def test_a_first_token_feels_what_comes_while_it_is_waited_for(of_arrivals, is_of_prompts):
    """However long the answer is: what stays for minutes feels a rush of half a minute less."""
    able = of_arrivals[POOL.name]
    first, gap = GIVEN.targets
    slow = replace(
        able,
        at=replace(able.at, in_flight=100.0 * able.at.requests_per_second),
        limit=first if is_of_prompts else gap,
    )
    rush = 3.0 * STEP_SECONDS * slow.requests_per_second
    taken = looks([rush])
    before = dict.fromkeys(taken.by_replica, Felt(0.0, 0.0, 0.0, 0.0))
    [found] = felt(before, taken, {POOL.name: slow}, UNEVEN).values()
    assert slow.is_of_prompts is is_of_prompts
    assert (found.mean > found.recent / 2.0) is is_of_prompts
    later = felt(dict.fromkeys(taken.by_replica, Felt(0.0, 0.0, 0.0, 5.0)), looks([1.0]),
                 {POOL.name: slow}, UNEVEN)  # fmt: skip
    assert (next(iter(later.values())).worst < 4.5) is is_of_prompts


@pytest.mark.parametrize("waiting", [0.0, 500.0])
def test_the_worst_load_lasts_as_long_as_the_queue_that_it_left(of_arrivals, waiting):
    """Nothing comes any more, and whoever is late now came when everything did."""
    fleet = Fleet.of(1)
    memory = Memory(samples=intake(Memory(), fleet.seen(0.0, 0.0), {}).samples)
    seen = fleet.seen(STEP_SECONDS, 0.0)
    samples = {name: replace(each, waiting=waiting) for name, each in seen.samples.items()}
    taken = intake(memory, replace(seen, samples=samples), {})
    before = dict.fromkeys(taken.by_replica, Felt(0.0, 1.0, 1.0, 5.0))
    [found] = felt(before, taken, of_arrivals, EVEN).values()
    assert (found.worst == 5.0) is (waiting > 0.0)
    assert found.worst <= 5.0


def _with_caches(taken, usage):
    told = {
        name: replace(each, sample=replace(each.sample, kv_cache_usage=usage))
        for name, each in taken.by_replica.items()
    }
    return replace(taken, by_replica=told)


def test_caches_tell_at_which_load_they_would_be_full_unless_they_are_next_to_empty(of_arrivals):
    taken = looks([20.0, 20.0])
    bears = felt({}, taken, of_arrivals, EVEN)
    load = math.fsum(each.recent for each in bears.values()) / len(bears)
    half = cache_edge(None, bears, _with_caches(taken, 0.5), of_arrivals)
    assert half is not None and load < half < 2.5 * load, "the fuller, the longer requests stay"
    assert cache_edge(half, bears, _with_caches(taken, 0.05), of_arrivals) is None
