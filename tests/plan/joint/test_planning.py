"""The joint pass: who goes where, who waits, and in which words."""

import pytest

from poolwise.model.prediction import Interval
from poolwise.plan.joint.outcome import Act
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import Reservation, Rules, Share
from tests.plan.joint.cluster_given import (
    BOTH,
    HOUR,
    aims,
    by_key,
    job,
    option,
    pool,
    problem,
    running,
    starts,
)


def where(decision):
    return decision.option.pool


@BOTH
def test_few_gangs_keep_nodes_so_that_others_run_meanwhile(optimise):
    """Of six that wait for half a node each, four keep the other half; the rest is to be had."""
    half = option("p", 10, each=4)
    held = [running(f"held-{at}", half, {f"p-{at}": 1}) for at in range(6)]
    gangs = [job(f"gang-{at}", option("p", 5)) for at in range(6)]
    long = job("long", option("p", 200, each=1))
    found = plan(problem([pool("p", *[4] * 6)], *held, *gangs, long), optimise)
    assert len({hold.key for hold in found.holds["p"]}) == 4
    assert starts(found) == {"long": "p"}


@BOTH
@pytest.mark.parametrize("turned", [False, True])
def test_who_loses_least_leaves_the_scarce_pool(optimise, turned):
    """Both are fastest on the H100; one would lose 8 % away from it, the other 60 %."""
    llama = job("llama", option("h100", 10), option("a100", 10.8))
    bert = job("bert", option("h100", 10), option("a100", 16))
    pools = [pool("h100", 8), pool("a100", 8)]
    both = (bert, llama) if turned else (llama, bert)
    found = plan(problem(pools, *both), optimise)
    assert starts(found) == {"llama": "a100", "bert": "h100"}
    assert "loses 8.0 % against h100" in by_key(found)["llama"].reason
    assert "60 % more on a100" in by_key(found)["bert"].reason


@BOTH
def test_a_count_that_costs_the_same_is_not_taken_smaller_for_being_scarce(optimise):
    """Eight cost 1 % more than one, which nobody who asks for the least cost minds (AS_CHEAP), and
    take an eighth of the time: a pool where somebody waits gains nothing by the one."""
    one, eight = (Interval(loss, loss, loss) for loss in (1.0 + 1e-8, 1.0))
    tune = job(
        "tune",
        option("h100", 8, each=1, objective=one),
        option("h100", 1.01, each=8, objective=eight),
    )
    gangs = [job(f"gang-{at}", option("h100", 10)) for at in range(2)]
    found = plan(problem([pool("h100", 8, 8)], tune, *gangs), optimise)
    (chosen,) = (each.option for each in found.decisions if each.key == "tune")
    assert chosen is not None and chosen.accelerators == 8
    assert sorted(starts(found)) == ["gang-0", "tune"]


def dear_spot(*free):
    """One service fits on spot nodes alone, and so makes them dear, though it fills half of them;
    one would cost twice as much elsewhere, a run take twelve times as long; most have no choice,
    and there is one B200 for two."""
    either = (
        option("spot", None, each=4, objective=aims(1)),
        option("h100", None, each=4, objective=aims(2)),
    )
    tune = (
        option("spot", 40, each=8, objective=aims(1)),
        option("l4", 480, each=8, objective=aims(12)),
    )
    work = [
        job("bound", option("spot", None, each=8, objective=aims(1))),
        job("chat", *either),
        job("tune", *tune),
        *(job(f"twin-{at}", option("b200", 5), option("h100", 6)) for at in range(2)),
        *(job(f"other-{at}", option("h100", 5, each=1)) for at in range(14)),
    ]
    pools = [pool("spot", *free), pool("h100", 8, 8, 8, 8), pool("b200", 8), pool("l4", 8)]
    return problem(pools, *work)


def told(found, *keys):
    return {key: starts(found)[key] for key in keys}


@BOTH
def test_where_all_start_nobody_leaves_what_has_room(optimise):
    found = plan(dear_spot(8, 8, 8), optimise)
    assert told(found, "bound", "chat", "tune") == {"bound": "spot", "chat": "spot", "tune": "spot"}
    assert {each.pool for each in found.prices if each.delay} == {"b200"}, "one twin lacks it"


@BOTH
def test_of_what_is_left_who_loses_most_has_it(optimise):
    found = plan(dear_spot(8, 8), optimise)
    assert told(found, "bound", "chat", "tune") == {"bound": "spot", "chat": "h100", "tune": "spot"}


def test_what_is_left_is_shared_out_within_the_shares_of_namespaces():
    bound = job("bound", option("spot", None, each=8, objective=aims(1)), namespace="prod")
    tune = job(
        "tune",
        option("spot", 0.1, each=4, objective=aims(1)),
        option("l4", 3, each=2, objective=aims(12)),
    )
    more = job("more", option("l4", 3, each=2, objective=aims(1)))
    pools = [pool("spot", 8, 8), pool("l4", 8)]
    rules = Rules(namespace_shares={"research": 0.17})
    found = plan(problem(pools, bound, tune, more, rules=rules))
    assert starts(found) == {"bound": "spot", "tune": "l4", "more": "l4"}


def test_a_price_says_who_stays_and_who_leaves():
    dear = option("h100", 10, cost_per_hour=40.0)
    work = [
        job("llama", dear, option("a100", 10.8)),
        job("bert", dear, option("a100", 16, cost_per_hour=20.0)),
        job("more", dear),
        running("busy", option("h100", 1), {"h100-0": 1}),
        running("as-busy", option("a100", 1), {"a100-0": 1}),
    ]
    found = plan(problem([pool("h100", 0), pool("a100", 0)], *work))
    price = next(each for each in found.prices if each.pool == "h100")
    assert price.delay > 0
    assert price.per_hour > 0
    assert "bert would lose 60 % on a100" in price.reason
    assert "first to leave is llama, which would lose 8.0 % on a100" in price.reason


def _services(is_running):
    """Two of one accelerator: each breaks a node."""
    if not is_running:
        return [job(f"chat-{at}", option("h100", None, 1), priority=9) for at in range(2)]
    return [running(f"chat-{at}", option("h100", None, 1), {f"h100-{at}": 1}) for at in range(2)]


@BOTH
@pytest.mark.parametrize("is_running", [False, True], ids=["starting", "running"])
def test_nothing_is_kept_scarce_for_who_can_never_have_it(optimise, is_running):
    """The gang needs both nodes, which services hold for good: who can use the rest does."""
    free = 7 if is_running else 8
    pools = [pool("h100", free, free), pool("a100", 8, 8)]
    gangs = [job(f"gang-{at}", option("h100", 500, 8, 2)) for at in range(20)]
    bert = job("bert", option("h100", 10, 1), option("a100", 10.4, 1))
    found = plan(problem(pools, *_services(is_running), *gangs, bert), optimise)
    assert starts(found)["bert"] == "h100"
    assert {each.delay for each in found.prices} == {0.0}
    assert by_key(found)["gang-3"].act is Act.WAIT


def test_a_pool_takes_of_the_time_of_all_what_those_weigh_who_wait_for_it():
    """Two who have waited for two days weigh as much as eight who came now; they were counted."""
    rules = Rules(aging_seconds=24 * HOUR)
    pools = pool("old", 8), pool("new", 8)
    old = [job(f"o{at}", option("old", 1 + at), created=-48 * HOUR) for at in range(2)]
    new = [job(f"n{at}", option("new", 1 + at)) for at in range(2)]
    found = plan(problem(pools, *old, *new, rules=rules)).shares
    assert found["old"].of_all == pytest.approx(4 * found["new"].of_all)


def test_prices_count_those_alone_who_can_be_delayed():
    """One of the two pools of ``bert`` is held for good: the other is scarce for it and ``t5``."""
    pools = [pool("h100", 0), pool("a100", 8)]
    serves = running("chat", option("h100", None), {"h100-0": 1})
    gang = job("gang", option("h100", 500))
    work = [job(key, option("h100", 1), option("a100", 3)) for key in ("bert", "t5")]
    found = plan(problem(pools, serves, gang, *work))
    price = {each.pool: each for each in found.prices}
    assert price["h100"].delay == 0.0
    assert price["a100"].delay == pytest.approx(3 * 2 / 8, rel=0.05)
    assert "delays the 2 workloads that wait" in price["a100"].reason


@BOTH
def test_where_nobody_waits_the_fastest_pool_is_taken(optimise):
    alone = job("alone", option("slow", 20), option("fast", 10))
    found = plan(problem([pool("slow", 8, 8), pool("fast", 8)], alone), optimise)
    assert starts(found) == {"alone": "fast"}


@BOTH
def test_a_short_wait_is_better_than_a_slow_pool(optimise):
    busy = running("busy", option("fast", 1), {"fast-0": 1})
    waits = job("waits", option("fast", 10), option("slow", 30))
    found = by_key(plan(problem([pool("fast", 0), pool("slow", 8)], busy, waits), optimise))[
        "waits"
    ]
    assert found.act is Act.WAIT
    assert found.starts == HOUR
    assert "may start in about 60 min" in found.reason
    assert "largest holder: busy (8, ends in about 60 min)" in found.reason
    assert "slow is free, but would take 200 % longer" in found.reason


def test_fewer_of_the_same_pool_are_told_by_their_number():
    """8 of 16 were told as "p is free, but would take 73 % longer"."""
    busy = running("busy", option("p", 0.1), {"p-0": 1})
    waits = job("waits", option("p", 10, pods=2), option("p", 17.3))
    found = by_key(plan(problem([pool("p", 0, 8)], busy, waits)))["waits"]
    assert found.act is Act.WAIT
    assert "; 8 are free, but would take 73 % longer" in found.reason


@BOTH
def test_a_long_wait_is_worse_than_a_slow_pool(optimise):
    busy = running("busy", option("fast", 50), {"fast-0": 1})
    goes = job("goes", option("fast", 10), option("slow", 30))
    found = plan(problem([pool("fast", 0), pool("slow", 8)], busy, goes), optimise)
    assert starts(found) == {"goes": "slow"}


@BOTH
def test_the_short_goes_before_the_long(optimise):
    work = [job("long", option("p", 100)), job("short", option("p", 1))]
    assert starts(plan(problem([pool("p", 8)], *work), optimise)) == {"short": "p"}


@BOTH
def test_priority_goes_before_length(optimise):
    work = [job("long", option("p", 5), priority=1000), job("short", option("p", 1))]
    assert starts(plan(problem([pool("p", 8)], *work), optimise)) == {"long": "p"}


@BOTH
def test_age_goes_before_length_in_the_end(optimise):
    rules = Rules(aging_seconds=24 * HOUR)
    old = job("old", option("p", 100), created=-9 * 24 * HOUR)
    work = [old, job("short", option("p", 1))]
    assert starts(plan(problem([pool("p", 8)], *work, rules=rules), optimise)) == {"old": "p"}


@BOTH
def test_services_go_first_and_never_where_their_target_is_missed(optimise):
    misses = option("cheap", None, cost_per_hour=1.0, problem="ITL would be 90 ms, target 50 ms")
    serves = job("chat", misses, option("dear", None, cost_per_hour=9.0))
    found = plan(
        problem([pool("cheap", 8), pool("dear", 8)], job("short", option("dear", 0.1)), serves),
        optimise,
    )
    assert starts(found) == {"chat": "dear"}


@BOTH
def test_backfill_ends_before_the_gang_starts(optimise):
    """A gang of two nodes waits 10 h for the second; who fits before may use the first."""
    busy = running("busy", option("p", 10), {"p-0": 1})
    gang = job("gang", option("p", 2, pods=2), priority=3000)
    short, long = job("short", option("p", 5)), job("long", option("p", 50))
    pools = [pool("p", 0, 8)]
    assert starts(plan(problem(pools, busy, gang, short), optimise)) == {"short": "p"}
    found = plan(problem(pools, busy, gang, long), optimise)
    assert starts(found) == {}
    starting = {each.key: each.starts for each in found.reservations}
    assert starting == {"gang": 10 * HOUR, "long": 12 * HOUR}
    assert "1 workload ahead of it" in by_key(found)["long"].reason


@BOTH
def test_a_namespace_stays_within_its_share(optimise):
    rules = Rules(namespace_shares={"research": 0.5})
    here = running("here", option("p", 5), {"p-0": 1})
    work = [job("more", option("p", 1)), job("other", option("p", 2), namespace="serving")]
    found = plan(problem([pool("p", 0, 8)], here, *work, rules=rules), optimise)
    assert starts(found) == {"other": "p"}
    assert "namespace research holds all of its share" in by_key(found)["more"].reason


@BOTH
def test_what_can_never_run_is_refused_and_nothing_waits_for_it(optimise):
    work = [job("huge", option("p", 1, pods=9), priority=5000), job("small", option("p", 1))]
    found = plan(problem([pool("p", 8, 8)], *work), optimise)
    refused = by_key(found)["huge"]
    assert refused.act is Act.REFUSE
    assert refused.reason == (
        "cannot run anywhere: p: needs 9 pods of 8, has room for 2 when empty"
    )
    assert starts(found) == {"small": "p"}


@BOTH
def test_a_deadline_takes_the_pool_that_meets_it(optimise):
    """The better pool is busy for so long that only the slow one, at once, is in time."""
    busy = running("busy", option("fast", 4), {"fast-0": 1})
    due = job("due", option("fast", 10), option("slow", 13), deadline=13.5 * HOUR)
    calm = job("calm", option("fast", 10), option("slow", 19))
    pools = [pool("fast", 0), pool("slow", 8)]
    assert starts(plan(problem(pools, busy, due), optimise)) == {"due": "slow"}
    assert starts(plan(problem(pools, busy, calm), optimise)) == {}


@BOTH
def test_who_must_start_now_to_be_in_time_goes_first(optimise):
    work = [job("due", option("p", 10), deadline=11 * HOUR), job("short", option("p", 1))]
    assert starts(plan(problem([pool("p", 8)], *work), optimise)) == {"due": "p"}


def test_a_reservation_is_kept_unless_another_place_is_clearly_better():
    busy = [running("a", option("p", 10), {"p-0": 1}), running("b", option("q", 9.5), {"q-0": 1})]
    waits = job("waits", option("p", 20), option("q", 20))
    pools = [pool("p", 0), pool("q", 0)]
    fresh = plan(problem(pools, *busy, waits))
    assert fresh.reservations[0].option.pool == "q"
    had = (Reservation("waits", waits.options[0], 10 * HOUR),)
    again = plan(problem(pools, *busy, waits, reservations=had))
    assert again.reservations[0].option.pool == "p"
    later = [busy[0], running("b", option("q", 1), {"q-0": 1})]
    better = plan(problem(pools, *later, waits, reservations=had))
    assert better.reservations[0].option.pool == "q"


def test_a_brief_pass_keeps_the_reservations_of_who_had_no_turn():
    busy = running("busy", option("p", 10), {"p-0": 1, "p-1": 1})
    gang = job("gang", option("p", 2, pods=2))
    full = plan(problem([pool("p", 0, 0)], busy, gang))
    assert len(full.reservations) == 1
    kept = problem([pool("p", 0, 0)], busy, gang, reservations=full.reservations)
    assert plan(kept, optimise=False).reservations == full.reservations


def test_given_shares_are_used_as_they_are():
    work = job("w", option("fast", 10), option("slow", 10.5))
    other = job("v", option("fast", 100), option("slow", 100))
    given = {"fast": Share(1.0), "slow": Share(1e-9)}
    pools = [pool("fast", 8), pool("slow", 8)]
    found = plan(problem(pools, work, other, shares=given))
    assert found.shares == given
    assert starts(found)["v"] == "slow" or starts(found)["w"] == "slow"


def test_the_optimiser_never_gives_less_than_the_queue():
    sizes = [(5, 5.0), (4, 4.2), (4, 4.4), (3, 3.1), (2, 2.0)]
    work = [job(f"w{at}", option("p", hours, each=size)) for at, (size, hours) in enumerate(sizes)]
    asked = problem([pool("p", 8, 4)], *work)
    found = plan(asked)
    assert found.objective >= plan(asked, optimise=False).objective
    assert found.solver == "milp"


def test_an_empty_problem_has_an_empty_plan():
    found = plan(problem([]))
    assert found.decisions == ()
    assert found.prices == ()
    assert by_key(plan(problem([], job("w", option("p", 1)))))["w"].act is Act.REFUSE


@BOTH
def test_a_service_that_starts_has_no_end_either(optimise):
    """A gang of two nodes would wait for ever for the node that the service takes in this pass:
    nothing is kept for it, and nobody is told of a day."""
    chat = job("chat", option("p", None))
    wide = job("wide", option("p", 5, pods=2))
    long = job("long", option("p", 100))
    found = plan(problem([pool("p", 8, 8)], chat, wide, long), optimise)
    assert starts(found) == {"chat": "p", "long": "p"}
    waits = by_key(found)["wide"]
    assert (waits.act, waits.starts) == (Act.WAIT, None)
    assert "it is not known when more will be free" in waits.reason
    assert not found.reservations


@BOTH
def test_only_those_before_came_first(optimise):
    """Both keep half a node, and the first of them is not told that it waits for the second."""
    halves = {f"p-{at}": 1 for at in range(4)}
    busy = running("busy", option("p", 10, each=4, pods=4), halves)
    first, second = job("first", option("p", 5)), job("second", option("p", 6))
    found = by_key(plan(problem([pool("p", 4, 4, 4, 4)], busy, first, second), optimise))
    assert {found[key].act for key in ("first", "second")} == {Act.WAIT}
    assert found["first"].because == ""
    assert found["second"].because == "what is free is kept for first, which came first"


@BOTH
def test_a_loss_of_nothing_is_no_loss(optimise):
    """Where the ranking holds two pools equal, who leaves one of them is told so."""
    able = job("able", option("a", 10), option("b", 10))
    tied = job("tied", option("a", 10))
    found = by_key(plan(problem([pool("a", 8), pool("b", 8)], able, tied), optimise))
    assert where(found["able"]) == "b"
    assert found["able"].because.startswith("level with a")
    assert "loses" not in found["able"].because


@BOTH
def test_a_wait_without_end_is_told_as_such(optimise):
    busy = running("busy", option("fast", None), {"fast-0": 1})
    goes = job("goes", option("fast", 10), option("slow", 30))
    found = by_key(plan(problem([pool("fast", 0), pool("slow", 8)], busy, goes), optimise))
    assert "loses 200 % against fast, where the wait is of unknown length" in found["goes"].because


def test_an_answer_says_whether_others_start_than_the_queue_had_counted_on():
    """An exchange of pools gives the third a place, which the queue had given to another. The first
    is the oldest: the second does not go before it, so that there is an exchange at all."""
    pools = [pool("fast", 8), pool("slow", 8, 8)]
    times = {"first": (1, 4, 1, -6 * HOUR), "second": (4, 8, 2, 0), "third": (4, 8, 1, 0)}
    jobs = [
        job(name, option("fast", fast, pods=pods), option("slow", slow, pods=pods), created=created)
        for name, (fast, slow, pods, created) in times.items()
    ]
    assert not plan(problem(pools, *jobs), False).is_as_queued
    assert plan(problem(pools, *jobs[:2]), False).is_as_queued


def test_who_has_several_shapes_in_a_pool_loses_against_the_best_of_them():
    """Ten hours on two nodes, sixteen on one; twenty elsewhere are twice as long."""
    run = job("run", option("p", 10, pods=2), option("p", 16), option("q", 20, pods=2))
    found = plan(problem([pool("p", 8, 8), pool("q", 8, 8)], run))
    assert "100 % more on q" in by_key(found)["run"].reason
