"""What runs stays, unless a move is allowed and pays for its restart with a margin."""

import pytest

from poolwise.plan.joint.outcome import Act
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import Rules, Running, Workload
from tests.plan.joint.cluster_given import HOUR, by_key, job, option, pool, problem, running

MAY = Rules(may_move=True)


def slow_one(restart_hours=0.5, **more):
    """Runs for 20 h more where it is, and for 10 h on the other pool."""
    return running(
        "w", option("slow", 20), {"slow-0": 1}, option("slow", 20), option("fast", 10),
        restart_seconds=restart_hours * HOUR, is_movable=True, **more,
    )  # fmt: skip


def decided(workload, *others, rules=MAY, free=8, now=0.0):
    pools = [pool("slow", 0), pool("fast", free)]
    return by_key(plan(problem(pools, workload, *others, rules=rules, now=now)))[workload.key]


def test_a_move_that_pays_is_made_and_told():
    found = decided(slow_one())
    assert (found.act, found.option.pool, dict(found.nodes)) == (Act.MOVE, "fast", {"fast-0": 1})
    assert "moves from 8 of slow to 8 of fast: gains 9.5 h" in found.reason
    assert "beyond the 30 min that the restart loses" in found.reason


def test_a_deadline_that_is_met_elsewhere_alone_is_told():
    found = decided(slow_one(deadline=13 * HOUR))
    assert found.act is Act.MOVE
    assert "on slow it would miss its deadline by 7 h, on fast it ends 2.5 h" in found.reason
    assert "before it, the 30 min that the restart loses included" in found.reason


@pytest.mark.parametrize(("deadline_hours", "act"), [
    (25, Act.STAY), (19.5, Act.MOVE), (17.5, Act.MOVE), (16.5, Act.STAY), (9, Act.STAY),
])  # fmt: skip
def test_a_deadline_is_worth_a_restart_that_gains_too_little_else(deadline_hours, act):
    """It ends in 20 h, or with the restart in 17 h elsewhere: met by both, one, and none."""
    assert decided(slow_one(7.0, deadline=deadline_hours * HOUR)).act is act


@pytest.mark.parametrize(("hours", "act"), [(97.0, Act.STAY), (93.0, Act.MOVE)])
def test_a_twentieth_of_what_is_left_is_within_the_error_of_a_prediction(hours, act):
    """Of 100 hours, where the restart itself loses a minute."""
    run = running(
        "run", option("slow", 100), {"slow-0": 1}, option("fast", hours),
        restart_seconds=60.0, is_movable=True,
    )  # fmt: skip
    assert decided(run).act is act


def test_nobody_moves_to_miss_a_deadline():
    """It loses little elsewhere and would leave a scarce pool, but for its deadline."""
    holds = {"restart_seconds": 60.0, "is_movable": True}
    slow = option("slow", 52)
    late = running("late", option("fast", 50), {"fast-0": 1}, slow, deadline=51 * HOUR, **holds)
    wait = [job(f"w{at}", option("fast", 20), option("slow", 400)) for at in range(3)]
    pools = [pool("fast", 0), pool("slow", 8)]
    found = by_key(plan(problem(pools, late, *wait, rules=MAY)))
    assert found["late"].act is Act.STAY


def test_nothing_moves_by_default():
    assert decided(slow_one(), rules=Rules()).act is Act.STAY


@pytest.mark.parametrize(("restart_hours", "act"), [(6.0, Act.MOVE), (7.0, Act.STAY)])
def test_the_gain_must_exceed_the_restart_by_the_margin(restart_hours, act):
    """10 h are gained: more than 1.5 times 6 h, less than 1.5 times 7 h."""
    assert decided(slow_one(restart_hours)).act is act


def test_who_may_not_be_moved_stays():
    held = running("w", option("slow", 20), {"slow-0": 1}, option("fast", 10))
    assert decided(held).act is Act.STAY


def test_a_service_is_never_moved():
    serves = running(
        "w", option("slow", None), {"slow-0": 1}, option("fast", None), is_movable=True
    )
    assert decided(serves).act is Act.STAY


def test_what_was_moved_lately_stays():
    lately = Running(option("slow", 20), {"slow-0": 1}, since=-HOUR / 2, is_movable=True)
    assert decided(Workload("w", "a", 0.0, (option("fast", 10),), running=lately)).act is Act.STAY
    assert (
        decided(Workload("w", "a", 0.0, (option("fast", 10),), running=lately), now=HOUR).act
        is Act.MOVE
    )


def test_room_goes_to_who_waits_first():
    waits = job("short", option("fast", 1))
    assert decided(slow_one(), waits).act is Act.STAY


def test_a_run_leaves_a_scarce_pool_for_one_where_it_loses_little():
    """It is 4 % faster where it is, and holds up three that would be five times slower away."""
    holds = running(
        "holds", option("fast", 50), {"fast-0": 1}, option("slow", 52),
        restart_seconds=60.0, is_movable=True,
    )  # fmt: skip
    wait = [job(f"w{at}", option("fast", 20), option("slow", 400)) for at in range(3)]
    pools = [pool("fast", 0), pool("slow", 8)]
    found = by_key(plan(problem(pools, holds, *wait, rules=MAY)))
    assert found["holds"].act is Act.MOVE
    alone = by_key(plan(problem(pools, holds, rules=MAY)))
    assert alone["holds"].act is Act.STAY


def test_flapping_prices_cause_no_storm():
    """Each hour the other pool looks faster by a third; each run moves at most once a day."""
    rules = Rules(may_move=True, settle_seconds=24 * HOUR)
    where, since, moved = "a", -100 * HOUR, 0
    for hour in range(72):
        better = "b" if where == "a" else "a"
        nodes = {f"{where}-0": 1}
        state = Running(option(where, 30), nodes, since, restart_seconds=HOUR, is_movable=True)
        work = Workload("w", "a", 0.0, (option(better, 20),), running=state)
        pools = [pool(where, 0), pool(better, 8)]
        found = by_key(plan(problem(pools, work, rules=rules, now=hour * HOUR)))["w"]
        if found.act is Act.MOVE:
            where, since, moved = better, hour * HOUR, moved + 1
    assert moved == 3
