"""What the controller learns: lateness, errors, lasting demand, budgets, pools."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from poolwise.model.serving.capacity import KV_CACHE
from poolwise.model.serving.load import state
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling import fragility, surprise
from poolwise.plan.scaling.budget import LEAST_FACTOR, MOST_FACTOR, Budget
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.evidence import evidence, lessons, rise
from poolwise.plan.scaling.fragility import Belief, Lateness
from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.learning import late_requests, lateness, log_slowness
from poolwise.plan.scaling.lone import Known
from poolwise.plan.scaling.memory import Felt, Memory
from poolwise.plan.scaling.momentum import MOST_GROWTH, Momentum
from poolwise.plan.scaling.persistence import Persistence
from poolwise.plan.scaling.portfolio import PoolOffer, grown, shrunk, weights
from poolwise.plan.scaling.restraint import hold_seconds, restrained
from poolwise.plan.scaling.surprise import Checked
from poolwise.plan.scaling.swings import swing_of, usable_share
from poolwise.plan.scaling.unevenness import Unevenness, even
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import Delta
from tests.plan.scaling.given import STEP_SECONDS, Fleet, predictor, service

ALLOWED = 0.01
SCALE = 25.0 / 200.0
"""That a step of 200 requests has."""


def _as_foreseen(logs):
    return logs


def _truth(load, strength=0.7, steepness=10.0):
    return 1.0 / (1.0 + (1.0 - ALLOWED) / ALLOWED * (strength / load) ** steepness)


def _taught(loads, strength=0.7):
    belief = fragility.prior()
    for load in loads:
        told = Lateness(200.0 * _truth(load, strength), 200.0)
        belief = fragility.observed(belief, evidence([(_felt(load), told)], SCALE), ALLOWED)
    return belief


def _felt(load, worst=None, now=None):
    return Felt(now or load, load, load, worst or load)


@pytest.mark.parametrize("strength", [0.5, 0.7, 1.0, 1.6])
def test_strength_is_learned_from_who_was_late(strength):
    belief = _taught(np.tile(np.linspace(0.8, 1.15, 8) * strength, 15), strength)
    assert fragility.summary(belief)[0] == pytest.approx(strength, rel=0.06)
    late = fragility.curve_of(belief, ALLOWED)
    at_strength = np.interp(np.log(strength), fragility.LOG_RATIOS, late)
    assert at_strength == pytest.approx(ALLOWED, rel=0.5)


@pytest.mark.parametrize(
    ("gap_share", "expected_share"), [(0.8, 0.8), (1.0, 1.0), (1.02, 1.0), (1.5, None)]
)
def test_where_a_replica_idles_gaps_tell_only_what_no_router_can_make_of_them(
    gap_share, expected_share
):
    """It may have sent all prompts to those that idle, or none: the model's word stands between."""
    served = predictor().replica(predictor().prior_mix)
    alone_seconds = state(served, 4.0).decode.seconds
    gap_seconds = gap_share * alone_seconds
    gaps = Histogram((1.0, math.inf), (1000.0, 1000.0), 1000.0 * gap_seconds)
    told = Delta(
        since_seconds=10.0, until_seconds=20.0, replica_seconds=10.0, inter_token_seconds=gaps,
        finished_requests=80.0,
    )  # fmt: skip
    idle, busy = (log_slowness(0.0, served, told, 4.0, 1e6, each) for each in (True, False))
    assert busy < math.log(gap_share) - 0.03
    expected = busy if expected_share is None else math.log(expected_share)
    assert idle == pytest.approx(expected, abs=1e-9)


def test_a_larger_share_allows_a_higher_load():
    errors = surprise.shares(surprise.none(), _as_foreseen, 5.0, 60.0, 100.0)
    highest = fragility.bearable(
        fragility.curve_of(_taught([0.6, 0.7] * 20), ALLOWED), surprise.LOG_ERRORS, errors
    )
    assert highest(0.002) < highest(0.005) < highest(0.01)


def test_one_overload_is_no_hundred_lessons():
    calm = _taught([0.6] * 40)
    shaken = calm
    for _ in range(8):
        late = Lateness(200.0, 200.0)
        told = evidence([(_felt(0.8, worst=1.5), late)], SCALE)
        shaken = fragility.observed(shaken, told, ALLOWED)
    ratio = fragility.summary(shaken)[0] / fragility.summary(calm)[0]
    assert 0.7 < ratio < 1.3


def test_who_is_late_on_a_full_replica_tells_nothing_of_the_empty_ones():
    """Three full replicas among eighty idle ones, minutes after a jump of the load."""
    belief = fragility.prior()
    found = [(_felt(0.3, worst=5.0), Lateness(100.0, 100.0))] * 3
    found += [(_felt(0.05), Lateness(0.0, 100.0))] * 77
    for _ in range(20):
        belief = fragility.observed(belief, evidence(found, SCALE), ALLOWED)
    assert fragility.summary(belief)[0] > 0.9


def test_who_is_late_in_a_sudden_rise_is_put_down_to_the_load_of_the_moment():
    rising, calm = _felt(0.5, now=1.0), _felt(0.5, now=0.45)
    assert rise([rising, rising]) == pytest.approx(2.0)
    assert rise([rising, calm]) == pytest.approx(1.45)
    assert rise([calm]) == rise([]) == 1.0
    counted = 1.0 / math.sqrt(36.0)
    assert rise([_felt(0.5, now=0.58)], counted) == 1.0  # no further off than 36 arrivals are
    late = Lateness(10.0, 100.0)
    found = [evidence([(rising, late)], SCALE, rising=factor) for factor in (1.0, 2.0)]
    loads = [np.exp(fragility.LOG_RATIOS) @ each.late / each.late.sum() for each in found]
    assert loads == pytest.approx([0.5, 1.0], rel=0.01)
    assert np.allclose(found[0].timely, found[1].timely)


@pytest.mark.parametrize(
    ("limiting", "latency", "load"),
    [(KV_CACHE, None, 1.0), ("TPOT", Metric.TPOT, 0.9), ("TTFT", Metric.TTFT, 0.5)],
)
def test_whose_load_it_is_goes_by_what_delays(limiting, latency, load):
    """Of a look at two replicas that have just filled: a full cache is told as it is, a rate is a
    count of 100 requests, and prompts that queue have come before."""
    given, fleet = service(), Fleet.of(2)
    memory = replace(Memory(), samples=intake(Memory(), fleet.seen(0.0, 0.0), {}).samples)
    taken = intake(memory, fleet.after(100.0, 0.1).seen(STEP_SECONDS, 0.0), {})
    target = latency and Target(latency, 99.0, 0.1)
    pool = given.pools[0]
    able = capability(pool.predictor, pool.predictor.prior_mix, given.targets, 1.0)
    able = replace(able, limiting=limiting, limit=target)
    filling = dict.fromkeys(taken.by_replica, _felt(0.5, now=1.0))
    told = lessons(given, memory, taken, filling, {pool.name: able}).evidence
    late = told.late * (np.exp(fragility.LOG_RATIOS) > 0.4)  # not those that hint at an edge
    usable = usable_share(1.0, swing_of(able))
    felt = np.exp(fragility.LOG_RATIOS) @ late / late.sum() * usable
    assert felt == pytest.approx(load, rel=0.05)


def test_a_full_cache_is_full_whatever_was_believed():
    far = _taught(np.tile(np.linspace(0.24, 0.35, 8), 15), strength=0.3)
    assert fragility.summary(far)[0] < 0.4
    untouched, full = (fragility.informed(far, edge, True, None) for edge in (None, 1.0))
    assert np.allclose(untouched.weights, far.weights)
    assert fragility.summary(full)[0] > fragility.summary(far)[0]


def test_where_it_is_known_who_is_late_alone_few_others_are_late_at_any_load():
    found = [(_felt(load), Lateness(6.0, 200.0)) for load in (0.3, 0.35, 0.4)] * 20
    belief = fragility.observed(fragility.prior(), evidence(found, SCALE), ALLOWED)
    assert fragility.expected_floor(belief) == pytest.approx(0.03, rel=0.1)
    told = fragility.informed(belief, None, False, Known(0.02, 0.0))
    assert fragility.expected_floor(told) < 0.01
    assert fragility.summary(told)[0] < 0.7 * fragility.summary(belief)[0]
    may_be_more = fragility.informed(belief, None, False, Known(0.02, 0.03))
    assert fragility.expected_floor(may_be_more) == pytest.approx(0.03, rel=0.1)


def test_unevenness_is_what_replicas_differ_by_beyond_chance():
    uneven = noise = even()
    for _ in range(100):
        uneven = uneven.after([0.6, 1.0, 1.4], 15.0)
        noise = noise.after([0.8, 1.0, 1.2], 15.0, chance=0.25)
    assert _deviation(uneven) > 0.25
    assert _deviation(noise) < 0.08
    again = Unevenness.read(uneven.as_list())
    assert np.allclose(again.seconds, uneven.seconds, atol=1e-2)


def test_a_fleet_that_idles_tells_little_of_how_uneven_it_is():
    idle = busy = even()
    for _ in range(100):
        idle, busy = idle.after([0.01, 0.01, 0.1], 15.0), busy.after([0.2, 0.2, 2.0], 15.0)
    assert _deviation(busy) > 2.0 * _deviation(idle)


def _deviation(told):
    return math.sqrt(told.log_variance)


def _of_gaps(*counts):
    """By buckets up to 10, 25, 50 and 100 ms, and beyond."""
    gaps = Histogram((0.01, 0.025, 0.05, 0.1, math.inf), tuple(np.cumsum(counts)), 1.0)
    return Delta(
        since_seconds=10.0, until_seconds=20.0, replica_seconds=10.0, tpot_seconds=gaps,
        finished_requests=float(sum(counts)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "late"), [(0.025, 100.0), (0.035, 10.0), (0.05, 1.0), (0.1, 1.0), (0.2, 1.0)]
)
def test_of_gaps_in_the_bucket_of_their_target_few_are_long(seconds, late):
    """Those beyond the last bound are late wherever the target is: nothing tells how long."""
    given = service(targets=(Target(Metric.TPOT, 99.0, seconds),))
    found, count = late_requests(given, given.targets, _of_gaps(0.0, 900.0, 99.0, 0.0, 1.0))
    assert found == pytest.approx(late, rel=0.1)
    assert count == 1000.0


@pytest.mark.parametrize(("of_lone", "told"), [(0.95, 1), (0.5, 2)])
def test_whom_no_load_keeps_below_a_bound_tells_nothing_of_the_edge(of_lone, told):
    """Else who is in time would speak for an edge at a thousand times the load."""
    served = predictor().replica(predictor().prior_mix)
    alone_seconds = state(served, 1.0).decode.seconds
    given = service(targets=(Target(Metric.TPOT, 99.0, 4.0 * alone_seconds),))
    able = capability(predictor(), predictor().prior_mix, given.targets, 1.0)
    bounds = (alone_seconds * of_lone, alone_seconds / of_lone, 4.0 * alone_seconds, math.inf)
    gaps = Histogram(bounds, (10.0, 60.0, 100.0, 100.0), 1.0)
    delta = replace(_of_gaps(100.0), tpot_seconds=gaps)
    assert len(list(lateness(given, delta, able))) == told


def test_a_belief_fades_to_the_prior_and_is_read_again():
    belief = _taught([0.7] * 30)
    old = fragility.faded(belief, 100 * fragility.HALF_LIFE_SECONDS)
    assert np.allclose(old.weights, fragility.prior().weights)
    assert np.allclose(Belief.read(belief.as_list()).weights, belief.weights, atol=1e-2)
    with pytest.raises(ValueError, match="none of this version"):
        Belief.read([1.0])


def test_surprises_lower_what_is_aimed_at():
    steady = surprise.none()
    jumpy = surprise.none()
    for index in range(200):
        steady = surprise.observed(steady, Checked(10.0, 10.0, 10.0), 15.0, 100.0)
        is_jump = index % 20 == 0
        came, requests = (30.0, 300.0) if is_jump else (10.0, 100.0)
        jumpy = surprise.observed(jumpy, Checked(10.0, 10.0, came), 15.0, requests)
    curve = fragility.curve_of(_taught([0.6, 0.7] * 20), ALLOWED)
    aims = [
        fragility.bearable(curve, surprise.LOG_ERRORS, _shares(errors, _as_foreseen, 10.0))(0.007)
        for errors in (steady, jumpy)
    ]
    assert aims[1] < 0.7 * aims[0]
    again = surprise.Errors.read(jumpy.as_list())
    assert np.allclose(again.counts, jumpy.counts, atol=1e-3)


def _shares(errors, expectation, expected):
    return surprise.shares(errors, expectation, expected, 60.0, 100.0)


def test_errors_are_those_of_what_is_expected_now():
    """Bursts of 20 out of a lull of 1, which whoever expects 5 of both misses by 4 either way."""
    errors = surprise.none()
    for index in range(200):
        foreseen, came = (1.0, 20.0) if index % 2 else (20.0, 1.25)
        errors = surprise.observed(errors, Checked(foreseen, foreseen, came), 15.0, 100.0)
    lull, burst = (_shares(errors, _as_foreseen, size) for size in (1.0, 20.0))
    mean = _shares(errors, lambda logs: np.full_like(logs, math.log(5.0)), 5.0)
    assert lull[surprise.LOG_ERRORS > 2.9].sum() > 0.9  # the largest error there is
    assert burst[surprise.LOG_ERRORS < -1.4].sum() > 0.9
    near = np.abs(surprise.LOG_ERRORS - math.log(4.0)) < 0.1
    assert mean[near].sum() == pytest.approx(0.5, abs=0.1)
    assert mean[surprise.LOG_ERRORS > 2.0].sum() < 0.01


def test_what_is_expected_of_one_is_what_is_expected_of_several():
    told = Persistence()
    for index in range(60):
        told = told.after(5.0 + index % 7, 9.0 + index % 4, 15.0)
    sizes = np.array([2.0, 8.0, 40.0])
    several = np.exp(told.log_expected(np.log(sizes), 0.5))
    assert several == pytest.approx([told.expected(each, 0.5) for each in sizes])
    assert not np.allclose(several, sizes)


def test_demand_that_lasts_is_believed_and_bursts_are_not():
    lasting, bursts = Persistence(), Persistence()
    for index in range(200):
        day = 10.0 * math.exp(math.sin(index / 30.0))
        lasting = lasting.after(day, 10.0 * math.exp(math.sin((index + 1) / 30.0)), 15.0)
        bursts = bursts.after(
            50.0 if index % 10 == 0 else 1.0, 50.0 if index % 7 == 0 else 1.0, 15.0
        )
    assert lasting.slope > 0.9 and lasting.expected(20.0) == pytest.approx(20.0, rel=0.1)
    assert bursts.slope < 0.2 and bursts.expected(50.0) < 30.0


def test_the_first_looks_of_one_rise_foretell_no_second_one():
    told = Persistence()
    assert told.expected(2.0) == 2.0
    for foreseen, came in ((0.69, 1.51), (0.69, 1.98), (0.96, 1.91)):  # before two real engines
        told = told.after(foreseen, came, 5.0)
    assert 2.0 < told.expected(2.0) < 2.8


def test_one_high_look_among_low_ones_tells_no_more_than_one():
    low = Persistence()
    for index in range(200):
        low = low.after(1.0 + 0.2 * (index % 3), 1.0 + 0.2 * (index % 2), 5.0)
    jumped, often = low.after(1.2, 60.0, 5.0), low
    for _ in range(60):
        often = often.after(1.2, 60.0, 5.0).after(1.0, 1.0, 5.0)
    assert 0.0 < jumped.growth < 1.0 < often.growth


def test_a_rise_within_a_long_start_is_hardly_expected_again():
    told = Persistence()
    for index in range(40):
        told = told.after(1.0 + 0.1 * (index % 5), 10.0 + index % 7, 15.0)
    assert 0.5 < told.slope < 1.0
    assert told.expected(10.0) > 30.0
    assert told.expected(10.0, trusted_share=0.28) < 20.0


def _momentum_of(rates, span_seconds=60.0, seconds=15.0):
    logs, steps = np.log(rates), round(span_seconds / seconds)
    growths = logs[steps:] - logs[:-steps]
    found = Momentum()
    for before, then in zip(growths[:-steps], growths[steps:], strict=True):
        found = found.after(float(before), float(then), seconds, span_seconds)
    return found


LOOKS = np.arange(240)


@pytest.mark.parametrize(
    ("rates", "least", "most"),
    [
        (100.0 + 60.0 * np.sin(LOOKS / 13.0), 0.6, 1.0),  # up and down within twenty minutes
        (100.0 * np.exp(-LOOKS / 40.0), 0.6, 1.0),  # falls tell of rises, too
        (np.random.default_rng(1).poisson(100.0, 240) / 1.0, 0.0, 0.0),
        (np.where(LOOKS // 60 % 2, 100.0, 30.0), 0.0, 0.01),  # a jump each quarter of an hour
        (np.where(LOOKS // 4 % 10, 30.0, 100.0), 0.0, 0.01),  # bursts of a minute
        (np.full(240, 100.0), 0.0, 0.0),
    ],
)
def test_a_rise_is_expected_to_go_on_as_far_as_those_before_did(rates, least, most):
    assert least <= _momentum_of(rates).slope <= most


def test_looks_within_one_start_tell_one_growth():
    sine = 100.0 + 60.0 * np.sin(LOOKS / 13.0)
    often = np.interp(np.arange(0.0, 239.0, 0.2), LOOKS, sine)
    assert _momentum_of(often, seconds=3.0).squares == pytest.approx(
        _momentum_of(sine).squares, rel=0.05
    )


def test_a_growth_that_may_be_a_jump_is_not_expected_twice():
    sure = Momentum(products=100.0, squares=100.0)
    assert sure.following(0.2) == pytest.approx(0.2, rel=0.01)
    assert sure.following(3.0) == pytest.approx(MOST_GROWTH, rel=0.01)
    assert sure.following(-3.0) == pytest.approx(-MOST_GROWTH, rel=0.01)
    assert Momentum().following(3.0) == 0.0


def test_what_was_not_spent_may_be():
    unspent = spent = Budget()
    for _ in range(240):
        unspent, spent = unspent.after(0.0, 100.0, 15.0), spent.after(3.0, 100.0, 15.0)
    assert Budget().factor(ALLOWED) == pytest.approx(0.8 / 0.7)
    assert unspent.factor(ALLOWED) == MOST_FACTOR and spent.factor(ALLOWED) == LEAST_FACTOR


def test_chance_in_who_is_late_at_any_load_spends_nothing():
    """Of those that are late anyway, now a few more come and now a few less."""
    told = Budget()
    for step in range(240):
        told = told.after(3.0 * (-1.0) ** step, 100.0, 15.0)
    assert told.factor(ALLOWED) == MOST_FACTOR
    saved = told.after(-1000.0, 100.0, 15.0)
    assert saved.late_share(ALLOWED) >= 0.0 and saved.factor(ALLOWED) == MOST_FACTOR


CHEAP = PoolOffer("l40s", 0.25, 1.0, 2, 6)
DEAR = PoolOffer("h100", 1.0, 10.0, 3, 100)


def test_fleets_grow_by_the_cheapest_that_closes_and_shrink_by_the_dearest():
    assert grown((DEAR, CHEAP), 4.4, 100) == {"h100": 3, "l40s": 6}
    assert grown((DEAR, CHEAP), 6.0, 100) == {"h100": 5, "l40s": 6}
    assert grown((DEAR, CHEAP), 6.0, 6) == {"h100": 3, "l40s": 3}
    assert shrunk((DEAR, CHEAP), 1.4, 1) == {"h100": 1, "l40s": 2}
    assert shrunk((DEAR, CHEAP), 0.2, 1) == {"h100": 0, "l40s": 1}
    told = weights({"h100": 1, "l40s": 2}, (DEAR, CHEAP))
    assert told["h100"] + 2 * told["l40s"] == pytest.approx(1.0)


def test_down_waits_for_what_was_needed_lately_and_turns_are_seldom():
    memory, held, changes = Memory(), 10.0, []
    for step in range(480):  # two hours in which the need swings each five minutes
        wanted = 10.0 if step // 20 % 2 else 5.0
        found = restrained(memory, 15.0 * step, held, wanted, hold_seconds(60.0, 15.0))
        if found.replicas != held:
            changes.append(found.replicas > held)
        memory, held = found.memory, float(found.replicas)
        assert held >= wanted
    turns = sum(one != other for one, other in pairwise(changes))
    assert 0 < turns <= 2 * 6


@pytest.mark.parametrize(
    ("start_seconds", "stay_seconds", "hold"),
    [(5.0, 15.0, 120.0), (60.0, 15.0, 120.0), (180.0, 15.0, 200.0), (60.0, 120.0, 240.0)],
)
def test_a_replica_is_held_until_it_is_seen_who_is_left(start_seconds, stay_seconds, hold):
    memory, step = Memory(), 15.0
    assert hold_seconds(start_seconds, stay_seconds) == hold
    for moment in range(100):
        wanted = 4.0 if moment == 0 else 2.0
        found = restrained(memory, step * moment, 4.0, wanted, hold)
        memory = found.memory
        if found.replicas < 4.0:
            break
    assert hold < step * moment <= hold + step


def test_a_fleet_that_idles_is_let_go_though_it_changed_its_direction_twice_before():
    now = 4000.0
    before = replace(Memory(), turns=(now - 2500.0, now - 1000.0), direction=1)

    def later(wanted, seconds):
        memory, held = before, 8.0
        for step in range(int(seconds / 15.0)):
            found = restrained(memory, now + 15.0 * step, held, wanted, hold_seconds(60.0, 15.0))
            memory, held = found.memory, found.replicas
        return held

    assert later(7.0, 600.0) == 8.0
    assert later(5.0, 600.0) == 8.0
    assert later(1.0, 600.0) == 1.0


@pytest.mark.parametrize(("wanted", "rest_seconds"), [(7.0, 1200.0), (6.0, 300.0)])
def test_after_a_change_of_direction_few_replicas_rest_longer_than_many(wanted, rest_seconds):
    """One of eight stays for twenty minutes, a quarter of them for five."""
    memory, held, turned = Memory(turns=(0.0,), direction=1), 8.0, 0.0
    while held == 8.0:
        turned += 15.0
        found = restrained(memory, turned, held, wanted, hold_seconds(60.0, 15.0))
        memory, held = found.memory, found.replicas
    assert (held, turned) == (wanted, rest_seconds)
