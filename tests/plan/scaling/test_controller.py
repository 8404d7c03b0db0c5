"""What the controller decides, look after look."""

import dataclasses
import functools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model.work import Metric, Target
from poolwise.plan.scaling import account, surprise
from poolwise.plan.scaling.controller import LEAST_IDLE_SECONDS, decide, idle_seconds
from poolwise.plan.scaling.decision import Remark
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.momentum import Momentum
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.service import Loading, Pool
from tests.plan.scaling.given import STEP_SECONDS, Course, Fleet, course, predictor, service, target

LOW, HIGH = 5.0, 120.0
"""Requests per second: of one replica, and of many."""
QUIET = [LOW] * 24
"""Longer than the five minutes in which nothing is taken away."""


@functools.cache
def busy() -> Course:
    """A service that has been watched for a while, and has more replicas than it needs."""
    return course(service(), [30.0] * 22, replicas=6)


def test_load_that_one_replica_bears_comes_down_to_it():
    assert course(service(), [0.7 * LOW] * 40, replicas=6).decision.replicas == 1


def test_more_load_is_answered_at_once_with_as_many_as_it_needs():
    before = course(service(), QUIET, replicas=4)
    after = course(service(), [*QUIET, HIGH, HIGH, HIGH], replicas=4)
    assert after.decision.replicas > before.decision.replicas + 1


def test_what_rose_and_fell_before_is_foreseen_to_go_on_rising():
    """Never fewer replicas for it, and more at some looks; at others both come to one number."""
    both = [taught_and_not(looks) for looks in range(171, 177)]
    for rising, level in both:
        assert rising.memory.momentum.slope > 0.5
        assert rising.memory.bins[-1].foreseen > 1.1 * level.memory.bins[-1].foreseen
        assert rising.replicas >= level.replicas
    assert any(rising.replicas > level.replicas for rising, level in both)


def taught_and_not(looks):
    """What is decided in a wave by who has seen two before, and by who has not."""
    waves = [110.0 - 90.0 * math.cos(2.0 * math.pi * look / 80.0) for look in range(looks)]
    told, before = service(), course(service(), waves[:-1])
    fleet = before.fleet.after(waves[-1] * STEP_SECONDS)
    seen = fleet.seen(before.now_seconds + STEP_SECONDS, waves[-1])
    untaught = dataclasses.replace(before.memory, momentum=Momentum())
    return tuple(decide(told, memory, seen) for memory in (before.memory, untaught))


@pytest.mark.parametrize(
    ("waiting", "peak", "is_whole"),
    [(900.0, 0.0, True), (5.0, 0.0, False), (900.0, 100.0, False)],
)
def test_a_jump_beyond_all_before_counts_whole_once_a_queue_is_late(waiting, peak, is_whole):
    """What its usual ups and downs came to says nothing of it."""
    told, ups = service(targets=(target(),)), [*[4.0] * 5, *[9.0] * 5] * 12
    before = course(told, ups)
    looked = before.fleet.after(HIGH * STEP_SECONDS).seen(before.now_seconds + STEP_SECONDS, HIGH)
    queued = {
        name: dataclasses.replace(sample, waiting=waiting / len(looked.samples))
        for name, sample in looked.samples.items()
    }
    memory = dataclasses.replace(before.memory, peak=max(before.memory.peak, peak))
    seen = dataclasses.replace(looked, samples=queued)
    after = decide(told, memory, seen).memory
    assert before.memory.persistence.slope < 0.9
    assert (after.bins[-1].expected == pytest.approx(after.bins[-1].foreseen)) == is_whole
    assert after.leapt_seconds == (seen.now_seconds if is_whole else None)
    unsettled = dataclasses.replace(memory, since_seconds=seen.now_seconds - 599.0)
    assert decide(told, unsettled, seen).memory.leapt_seconds is None


def test_nothing_is_taken_away_right_at_the_beginning():
    assert course(service(), [LOW] * 10, replicas=6).decision.replicas == 6


def test_looks_at_replicas_that_start_are_no_beginning():
    told, memory, fleet = service(), Memory(), Fleet.of(6, "h100")
    ready = fleet.seen(0.0, 0.0).replicas
    starting = tuple(ReplicaSeen(each.name, "h100", Phase.STARTING, -600.0) for each in ready)
    for ago in range(600, 0, -int(STEP_SECONDS)):
        memory = decide(told, memory, Seen(-float(ago), starting, {})).memory
    assert memory.since_seconds is None
    for look in range(11):
        now = look * STEP_SECONDS
        decision = decide(told, memory, fleet.seen(now, LOW))
        memory, fleet = decision.memory, fleet.after(LOW * STEP_SECONDS)
    assert memory.since_seconds == 0.0
    assert decision.replicas == 6


def test_equal_looks_give_equal_decisions():
    one, other = (course(service(), [*QUIET, HIGH, HIGH]) for _ in range(2))
    assert one.decision.reason == other.decision.reason
    assert one.memory.as_mapping() == other.memory.as_mapping()


@settings(deadline=None, max_examples=40)
@given(
    requests=st.sampled_from([0.0, LOW * STEP_SECONDS, 40.0 * STEP_SECONDS]),
    skipped=st.sets(st.integers(0, 5), min_size=1, max_size=6),
    is_told=st.booleans(),
    steps=st.integers(1, 4),
)
def test_it_never_shrinks_while_metrics_are_missing_or_broken(requests, skipped, is_told, steps):
    told, so_far = service(), busy()
    fleet, memory, now = so_far.fleet, so_far.memory, so_far.now_seconds
    for _ in range(steps):
        now += 120.0  # beyond what a look is good for
        held, fleet = len(fleet.counts), fleet.after(requests)
        names = {f"h100-{index % held}": "timed out" for index in skipped}
        seen = fleet.seen(now, 0.0, [index % held for index in skipped])
        seen = dataclasses.replace(seen, broken=names if is_told else {})
        decision = decide(told, memory, seen)
        assert decision.replicas >= held
        memory, fleet = decision.memory, fleet.resized(dict(decision.by_pool))
    assert decision.remarks.keys() & {Remark.METRICS_MISSING, Remark.METRICS_BROKEN}


def test_a_replica_that_nobody_has_read_yet_holds_as_well():
    told = service()
    so_far = busy()
    held = len(so_far.fleet.counts)
    seen = so_far.fleet.seen(so_far.now_seconds + STEP_SECONDS, 0.0, skipped=[0])
    assert decide(told, so_far.memory, seen).replicas >= held


def test_counters_that_go_back_hold_and_are_told():
    told = service()
    so_far = busy()
    fleet = dataclasses.replace(
        so_far.fleet, counts=tuple(0.9 * each for each in so_far.fleet.counts)
    )
    decision = decide(told, so_far.memory, fleet.seen(so_far.now_seconds + STEP_SECONDS, LOW))
    assert decision.replicas >= len(fleet.counts)
    assert "went back" in decision.remarks[Remark.METRICS_BROKEN]


def test_what_keeps_replicas_that_the_load_does_not_need_is_told():
    held = course(service(), [*QUIET, *[HIGH] * 8, LOW]).decision
    assert held.replicas > 1 and held.reason.startswith(f"{held.replicas} as before: ")
    assert held.reason.endswith("; so many were needed a moment ago")


def test_silence_of_healthy_metrics_shrinks_to_the_least():
    assert course(service(least_replicas=2), [0.0] * 40, replicas=6).decision.replicas == 2


def test_zero_only_where_something_holds_the_next_request():
    steps = [LOW] * 4 + [0.0] * int(LEAST_IDLE_SECONDS / STEP_SECONDS + 20)
    assert course(service(), steps, replicas=2).decision.replicas == 1
    held = service(can_scale_to_zero=True, least_replicas=0)
    asleep = course(held, steps, replicas=2)
    assert asleep.decision.replicas == 0
    seen = asleep.fleet.seen(asleep.now_seconds + STEP_SECONDS, 0.0)
    assert decide(held, asleep.memory, seen).replicas == 0
    waiting = dataclasses.replace(seen, held_requests=1.0)
    assert decide(held, asleep.memory, waiting).replicas == 1


def asleep(**changes: object):
    """A service without any replica, and a look at it in which its gateway holds so many."""
    told = service(can_scale_to_zero=True, least_replicas=0, **changes)
    so_far = course(told, [LOW] * 4 + [0.0] * 60, replicas=1)
    assert so_far.decision.replicas == 0

    def seen(held: float):
        found = so_far.fleet.seen(so_far.now_seconds + STEP_SECONDS, 0.0)
        return dataclasses.replace(found, held_requests=held)

    return told, so_far.memory, seen


@pytest.mark.parametrize("start_seconds", [20.0, 60.0, 120.0])
def test_the_last_replica_leaves_as_soon_as_it_was_idle_for_long_enough(start_seconds):
    pools = (Pool("h100", predictor(), start_seconds, 10.0),)
    told = service(can_scale_to_zero=True, least_replicas=0, pools=pools)
    enough = int(idle_seconds(start_seconds) / STEP_SECONDS)
    little = [0.1 * LOW] * len(QUIET)  # for which one replica is always enough
    assert course(told, [*little, *[0.0] * enough], replicas=1).decision.replicas == 1
    gone = course(told, [*little, *[0.0] * (enough + 1)], replicas=1).decision
    assert gone.replicas == 0
    assert "a gateway holds what may" in gone.reason


def test_what_drains_is_no_replica_that_could_serve_again():
    """Its metrics end with it, and that is no sign of life."""
    told, memory, seen = asleep()
    draining = ReplicaSeen("h100-0", "h100", Phase.DRAINING, -1000.0, -900.0)
    assert decide(told, memory, dataclasses.replace(seen(0.0), replicas=(draining,))).replicas == 0


def test_the_first_held_request_brings_one_replica_and_many_bring_as_many_as_take_them():
    told, memory, seen = asleep()
    first = decide(told, memory, seen(1.0))
    assert first.replicas == 1
    assert "a gateway holds 1 requests" in first.reason
    more = [decide(told, memory, seen(held)).replicas for held in (100.0, 1000.0, 4000.0)]
    assert more == sorted(more) and more[-1] > more[0] >= 1
    assert decide(told, memory, seen(1e7)).replicas == told.most_replicas


def test_a_first_replica_that_starts_stays_though_nobody_waits_for_it_any_more():
    told, memory, seen = asleep()
    memory = decide(told, memory, seen(3.0)).memory
    starting = ReplicaSeen("h100-0", "h100", Phase.STARTING, seen(0.0).now_seconds)
    found = decide(told, memory, dataclasses.replace(seen(0.0), replicas=(starting,)))
    assert found.replicas == 1


def test_at_zero_it_comes_back_once_nothing_holds_requests_any_more():
    told, memory, seen = asleep()
    gone = dataclasses.replace(told, can_scale_to_zero=False)
    assert decide(gone, memory, seen(0.0)).replicas == 1


@settings(deadline=None, max_examples=40)
@given(
    held=st.sampled_from([0.0, 1.0, 500.0]),
    silent=st.booleans(),
    can_sleep=st.booleans(),
    steps=st.integers(1, 4),
)
def test_no_gateway_takes_replicas_away_while_metrics_are_missing(held, silent, can_sleep, steps):
    told = service(can_scale_to_zero=can_sleep, least_replicas=0)
    so_far = busy()
    fleet, memory, now = so_far.fleet, so_far.memory, so_far.now_seconds
    for _ in range(steps):
        now += 1000.0
        count = len(fleet.counts)
        seen = fleet.seen(now, 0.0, range(count) if silent else [0])
        names = {each.name: "timed out" for each in seen.replicas if each.name not in seen.samples}
        seen = dataclasses.replace(seen, broken=names, held_requests=held)
        decision = decide(told, memory, seen)
        assert decision.replicas >= count
        memory, fleet = decision.memory, fleet.resized(dict(decision.by_pool))


@settings(deadline=None, max_examples=20)
@given(held=st.sampled_from([0.0, 2.0, 30.0]), rate=st.sampled_from([0.0, LOW, 60.0]))
def test_who_may_not_sleep_never_does(held, rate):
    told, so_far = service(), busy()
    fleet, memory, now = so_far.fleet, so_far.memory, so_far.now_seconds
    for _ in range(80):
        now, fleet = now + STEP_SECONDS, fleet.after(rate * STEP_SECONDS)
        seen = dataclasses.replace(fleet.seen(now, rate), held_requests=held)
        decision = decide(told, memory, seen)
        memory, fleet = decision.memory, fleet.resized(dict(decision.by_pool))
        assert decision.replicas >= 1


def test_redundancy_is_beside_what_the_load_needs():
    plain = course(service(), [60.0] * 40, replicas=8).decision.replicas
    spare = course(service(redundancy=2), [60.0] * 40, replicas=8).decision.replicas
    assert plain + 2 <= spare <= plain + 3  # where there is enough, one more may stay


def test_bounds_hold_and_say_so():
    decision = course(service(most_replicas=3), [*QUIET, *[400.0] * 8]).decision
    assert decision.replicas == 3
    assert "maxReplicas is 3" in decision.remarks[Remark.AT_MAXIMUM]


def test_free_capacity_is_a_hard_cap():
    pools = (Pool("h100", predictor(), 60.0, 10.0, most_replicas=5),)
    decision = course(service(pools=pools), [*QUIET, *[400.0] * 8]).decision
    assert decision.replicas == 5
    assert "room for 5" in decision.remarks[Remark.AT_CAPACITY]


def test_what_an_hour_may_cost_is_a_hard_cap():
    pools = (Pool("h100", predictor(), 60.0, 0.1, most_replicas=9),)
    told = service(pools=pools, most_cost_per_hour=0.3)
    decision = course(told, [*QUIET, *[400.0] * 8], replicas=1).decision
    assert decision.replicas == 3
    assert "an hour may cost 0.3" in decision.remarks[Remark.AT_COST_LIMIT]


def test_nothing_that_runs_is_stopped_for_what_it_costs():
    """A price may go up, or the limit down: a condition tells of it."""
    so_far = course(service(), [*QUIET, *[60.0] * 20], replicas=8)
    there = len(so_far.fleet.counts)
    pools = (Pool("h100", predictor(), 60.0, 10.0),)
    dear = service(pools=pools, most_cost_per_hour=10.0)
    fleet = so_far.fleet.after(60.0 * STEP_SECONDS)
    seen = fleet.seen(so_far.now_seconds + STEP_SECONDS, 60.0)
    free = decide(service(pools=pools), so_far.memory, seen)
    assert 1 < decide(dear, so_far.memory, seen).replicas == free.replicas <= there


def test_starts_are_paced_by_what_loads_their_weights():
    pools = (Pool("h100", predictor(), 60.0, 10.0, loading=Loading(5e9, 10e9)),)
    told = service(pools=pools)
    so_far = course(told, QUIET, replicas=4)
    held = len(so_far.fleet.counts)
    fleet = so_far.fleet.after(400.0 * STEP_SECONDS)
    decision = decide(told, so_far.memory, fleet.seen(so_far.now_seconds + STEP_SECONDS, 400.0))
    assert decision.replicas == held + 2
    assert Remark.STARTS_PACED in decision.remarks


def test_replicas_that_start_count():
    told = service()
    so_far = course(told, [*QUIET, HIGH, HIGH], replicas=4)
    ready = dataclasses.replace(
        so_far.fleet, **{key: getattr(so_far.fleet, key)[:2] for key in ("pools", "counts", "late")}
    )
    seen = ready.after(HIGH * STEP_SECONDS).seen(so_far.now_seconds + STEP_SECONDS, HIGH)
    starting = tuple(
        ReplicaSeen(f"new-{index}", "h100", Phase.STARTING, so_far.now_seconds)
        for index in range(so_far.decision.replicas - 2)
    )
    seen = dataclasses.replace(seen, replicas=(*seen.replicas, *starting))
    assert decide(told, so_far.memory, seen).replicas <= so_far.decision.replicas + 2


def test_a_target_below_the_floor_is_told_with_the_floor():
    decision = course(service(targets=(target(0.001),)), [LOW] * 3).decision
    assert "takes 0.0" in decision.remarks[Remark.SLO_UNREACHABLE]


def test_a_target_that_no_number_of_replicas_helps_asks_for_none():
    """Below the floor every request is late, whatever runs: the other targets count alone."""
    gaps = Target(Metric.ITL, 99.0, 0.075)
    hopeless = course(service(targets=(target(0.001), gaps)), [LOW] * 30, late_share=1.0).decision
    without = course(service(targets=(gaps,)), [LOW] * 30).decision
    assert hopeless.replicas == without.replicas < 8


def test_late_requests_make_the_fleet_larger():
    timely = course(service(), [40.0] * 30, replicas=4).decision.replicas
    late = course(service(), [40.0] * 30, replicas=4, late_share=0.05).decision.replicas
    assert late > timely


@pytest.mark.parametrize("has_joined", [True, False])
def test_a_queue_from_before_others_joined_is_no_unevenness_of_the_router(has_joined):
    told, so_far = service(), busy()
    fleet, memory, now = so_far.fleet, so_far.memory, so_far.now_seconds
    for _ in range(12):
        now, fleet = now + STEP_SECONDS, fleet.after(30.0 * STEP_SECONDS)
        seen = fleet.seen(now, 30.0)
        name, sample = next(iter(seen.samples.items()))
        queue = dataclasses.replace(sample, running=250.0, waiting=5000.0)
        *others, last = seen.replicas
        since = now - 120.0 if has_joined else last.ready_at_seconds
        joined = dataclasses.replace(last, ready_at_seconds=since)
        look = dataclasses.replace(
            seen, samples={**seen.samples, name: queue}, replicas=(*others, joined)
        )
        memory = decide(told, memory, look).memory
    far_above = memory.unevenness.shares[math.log(1.5) < surprise.LOG_ERRORS].sum()
    assert far_above < 0.01 if has_joined else far_above > 0.1


def test_the_speed_of_tokens_is_told_once_it_is_measured():
    early = course(service(), [30.0] * 20, replicas=6)
    assert early.decision.token_ratio is None
    late = course(service(), [30.0] * 60, replicas=6)
    learned = late.memory.log_slowness["h100"]
    assert late.decision.token_ratio == pytest.approx(math.exp(learned)) and learned
    unseen = dataclasses.replace(late.memory, log_slowness={})
    assert account.token_ratio(service(), unseen, late.now_seconds) is None


def test_a_decision_tells_its_numbers():
    decision = course(service(), [40.0] * 30).decision
    n = decision.replicas
    low, mid, high = (getattr(decision.forecast, key) for key in ("low", "mid", "high"))
    assert low < mid < high and mid == pytest.approx(40.0, rel=0.05)
    assert set(decision.tails[0].seconds) == {each for each in (n - 1, n, n + 1) if each}
    tails = [decision.tails[0].seconds[each] for each in sorted(decision.tails[0].seconds)]
    assert tails == sorted(tails, reverse=True)
    assert decision.limiting and decision.cost_per_hour == 10.0 * n
    assert "requests/s now" in decision.reason


def test_the_cheaper_pool_grows_and_the_dearer_one_shrinks():
    pools = (
        Pool("h100", predictor(), 60.0, 10.0),
        Pool("l40s", predictor("L40S"), 60.0, 1.0, most_replicas=2),
    )
    grown = course(service(pools=pools), [*QUIET, 400.0], replicas=1).decision
    assert grown.by_pool["l40s"] == 2 and grown.by_pool["h100"] >= 1
    decision = course(service(pools=pools), [*QUIET, *[400.0] * 8], replicas=1).decision
    assert decision.weights["h100"] > decision.weights["l40s"]
    together = sum(decision.weights[pool] * decision.by_pool[pool] for pool in decision.weights)
    assert together == pytest.approx(1.0)


def test_the_first_look_holds_and_a_record_of_it_is_json():
    told = service()
    first = decide(told, Memory(), Fleet.of(4).seen(0.0, 0.0))
    assert first.replicas == 4
    so_far = course(told, [*QUIET, HIGH])
    record = json.loads(json.dumps(so_far.memory.as_mapping()))
    again = Memory.read(record)
    assert again.as_mapping() == so_far.memory.as_mapping()
    of_before = {key: value for key, value in record.items() if key != "momentum"}
    assert Memory.read(of_before).momentum == Momentum()
    with pytest.raises(KeyError):
        Memory.read({})
