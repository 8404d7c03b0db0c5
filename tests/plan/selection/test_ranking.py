"""The objective decides where it can, money where it cannot, and idle speed has its limits."""

from dataclasses import replace
from itertools import permutations

import pytest

from poolwise.model.hardware import Resource
from poolwise.model.prediction import Bottleneck
from poolwise.plan.decision import Candidate
from poolwise.plan.requests.request import Goal
from poolwise.plan.selection.ranking import Ranking, losses, rank
from poolwise.plan.selection.ranking_words import judged


def run(pool, hours, cost, goal=Goal.TIME, own_spread=0.04, bound_by=Resource.COMPUTE):
    """Two of them are told apart from 9.8 % on: exp(1.645 * sqrt(2) * 0.04) - 1."""
    seconds = hours * 3600
    return Candidate(
        pool=pool,
        accelerator=pool,
        feasible=True,
        reason="",
        reason_code="Lost",
        bottleneck=Bottleneck(bound_by, {}),
        total_seconds=seconds,
        total_cost=cost,
        objective_value=seconds if goal is Goal.TIME else cost,
        own_spread=own_spread,
    )


def ranked(candidates, goal=Goal.TIME) -> Ranking:
    ranking = rank(candidates, goal)
    assert ranking is not None
    return ranking


def winner(*candidates, goal=Goal.TIME):
    """The winner's pool, whatever the order in which the pools are given."""
    found = {ranked(order, goal).winner.pool for order in permutations(candidates)}
    (only,) = found
    return only


def words(*candidates, goal=Goal.TIME):
    ranking = ranked(candidates, goal)
    return {each.pool: each.reason for each in judged(candidates, ranking, goal, "USD")}


def test_nobody_wins_among_none():
    assert rank([], Goal.TIME) is None


@pytest.mark.parametrize(
    ("candidates", "wins"),
    [
        pytest.param([run("h100", 10, 400), run("l40s", 40, 500)], "h100", id="faster"),
        pytest.param([run("h200", 9.6, 500), run("h100", 10, 400)], "h100", id="level: cheaper"),
        pytest.param([run("b200", 5, 420), run("h100", 10, 400)], "b200", id="at its price"),
        pytest.param([run("b200", 5, 9000), run("h100", 10, 400)], "b200", id="at any price"),
        pytest.param([run("b200", 5, None), run("h100", 10, 400)], "b200", id="at no known price"),
        pytest.param([run("h100", 10, None), run("l40s", 40, 500)], "h100", id="no price known"),
    ],
)
def test_time(candidates, wins):
    assert winner(*candidates) == wins


def test_idle_accelerators_are_worth_less():
    """Twice the speed for 1.7 times the money: for compute yes, for a wait on input no."""
    slow = run("l40s", 20, 100, bound_by=Resource.INPUT)
    assert winner(run("h100", 10, 170), slow) == "h100"
    assert winner(run("h100", 10, 170, bound_by=Resource.INPUT), slow) == "l40s"


@pytest.mark.parametrize("goal", [Goal.COST, Goal.ENERGY])
def test_other_goals_take_the_least(goal):
    assert winner(run("a", 10, 300, goal), run("b", 5, 400, goal), goal=goal) == "a"


def test_unknown_price_never_wins_on_cost():
    assert winner(run("a", 1, None, Goal.COST), run("b", 9, 400, Goal.COST), goal=Goal.COST) == "b"


def test_a_far_faster_pool_is_never_level():
    """Wide ranges that overlap tell nothing: what two pools share of the error cancels."""
    fast, slow = run("b200", 5, 900, own_spread=0.15), run("h100", 10, 400, own_spread=0.15)
    assert winner(fast, slow) == "b200"
    assert ranked([fast, slow]).is_significant


def test_significance():
    assert ranked([run("a", 10, 400), run("b", 40, 500)]).is_significant
    assert not ranked([run("a", 10, 400), run("b", 10.5, 500)]).is_significant


def test_equals_are_ordered_by_name():
    assert winner(run("b", 10, 400), run("a", 10, 400)) == "a"


def test_of_one_price_the_faster_pool_wins_whatever_its_name():
    """And says so; 5 % less time is no difference that anybody could rely on."""
    slow, fast = run("a", 12, 400, Goal.COST), run("b", 10, 400, Goal.COST)
    assert winner(slow, fast, goal=Goal.COST) == "b"
    told = words(slow, fast, goal=Goal.COST)
    assert told["b"] == "cheapest: $400; the same as a, and faster"
    assert told["a"] == "$400, the same as b, which is faster"
    nearly = run("b", 11.9, 400, Goal.COST)
    assert winner(slow, nearly, goal=Goal.COST) == "a"


@pytest.mark.parametrize("goal", [Goal.COST, Goal.ENERGY])
def test_of_two_per_cent_the_faster_pool_is_as_cheap(goal):
    """Nobody waits four times as long to save a tenth of a per cent."""
    slow, fast = run("a", 12, 400, goal), run("b", 3, 400.4, goal)
    assert winner(slow, fast, goal=goal) == "b"
    assert winner(slow, run("b", 3, 409, goal), goal=goal) == "a"
    assert winner(slow, run("b", 11.8, 400.4, goal), goal=goal) == "a", "hardly faster"
    told = words(slow, fast, goal=Goal.COST)
    assert "as cheap, and 4 times as fast" in told["b"]
    assert told["a"].endswith(", and takes 12 h against 3 h")


def test_of_pools_that_lose_the_same_the_cheaper_loses_less():
    """Who cannot have the best pool goes by that, and would go by the name of the next else."""
    lost = losses(ranked([run("best", 5, 900), run("a", 10, 400), run("b", 10, 300)]))
    assert 2.0 <= lost["b"] < lost["a"] < 2.0001


def test_where_accelerators_would_stand_idle_pools_lose_by_time_and_cost():
    """Beside the one that is taken, and not beside the fastest."""
    waits = {"bound_by": Resource.INPUT}
    pools = [run("fast", 10, 170, **waits), run("taken", 20, 100), run("slow", 40, 100)]
    lost = losses(ranked(pools))
    wanted = {"taken": 1.0, "slow": 2.0, "fast": 0.5 * 1.7**2}
    assert lost == pytest.approx(wanted, rel=1e-4)


def test_where_idle_accelerators_cost_nothing_pools_lose_by_time():
    """Two equal ones lost a factor of two to each other: who waits for the one passed the other."""
    waits = {"bound_by": Resource.INPUT}
    pools = [run(*each, **waits) for each in (("a", 10, 0), ("b", 10, 0), ("c", 15, 0))]
    lost = losses(ranked([*pools, run("paid", 9, 7, **waits)]))
    assert lost == pytest.approx({"a": 1.0, "b": 1.0, "c": 1.5, "paid": 2.0}, rel=1e-4)


def test_idleness_of_what_nobody_priced_is_worth_nothing():
    assert winner(run("fast", 10, None, bound_by=Resource.INPUT), run("slow", 40, 9)) == "fast"


def test_where_no_pool_can_have_its_replicas_they_lose_by_what_they_cost():
    """One that can loses to none of them by so little."""
    lacks = {"too_few": "needs 7 replicas"}
    cheap, dear = (
        replace(run(name, 10, cost, Goal.COST), **lacks) for name, cost in (("a", 100), ("b", 500))
    )
    able = run("c", 10, 900, Goal.COST)
    assert losses(ranked([cheap, dear], Goal.COST))["b"] == pytest.approx(5.0)
    assert losses(ranked([cheap, dear, able], Goal.COST)) == pytest.approx(
        {"a": 2.0, "b": 2.0, "c": 1.0}, rel=1e-4
    )


def test_reasons_beside_pools_that_nobody_priced():
    cheap, unpriced = run("a", 10, 400, Goal.COST), run("b", 5, None, Goal.COST)
    told = words(cheap, unpriced, goal=Goal.COST)
    assert told["a"] == "cheapest: $400; no other pool has a price to compare it with"
    assert told["b"] == "no price of it is known: set spec.price of its AcceleratorPool"
    foreign = replace(unpriced, price_problem="€20.00 per node and hour is not compared")
    told = words(cheap, foreign, goal=Goal.COST)
    assert told["a"] == "cheapest: $400; no other pool has a price to compare it with"
    assert told["b"] == "€20.00 per node and hour is not compared"


def test_nobody_is_called_cheaper_than_an_unknown_price():
    told = words(run("gb300", 9.6, None), run("gb200", 10, 400))
    assert told["gb200"] == (
        "level with gb300 (9.6 h; not significant: 4.2 % apart, ±9.8 %),"
        " whose price is not known: 10 h for $400"
    )


def test_reasons_say_the_numbers():
    told = words(run("h100", 10, 400), run("l40s", 12, 500), run("t4", 50, 600))
    assert told["h100"] == "fastest: 10 h; next is l40s with 12 h"
    assert told["l40s"] == "12 h, 20 % more than h100"
    assert told["t4"] == "50 h, 5 times h100"


def test_reasons_of_a_level_race():
    told = words(run("h200", 9.6, 500), run("h100", 10, 400))
    assert told["h100"] == (
        "level with h200 (9.6 h; not significant: 4.2 % apart, ±9.8 %), and cheaper: 10 h for $400"
    )
    assert told["h200"] == (
        "9.6 h against 10 h (not significant: 4.2 % apart, ±9.8 %), for $500 against $400"
    )


def test_reasons_of_speed_that_is_not_worth_it():
    told = words(run("b200", 5, 900, bound_by=Resource.INPUT), run("h100", 10, 400))
    idle = "its accelerators would wait for input"
    worth = "which makes such speed worth 1.41 times the cost at most"
    trade = f"2 times as fast for 2.25 times the cost ($900 against $400), and {idle}, {worth}"
    assert told["h100"] == f"10 h for $400; b200 would be {trade}"
    assert told["b200"] == f"5 h: {trade}"


@pytest.mark.parametrize(
    ("theirs", "mine", "says"),
    [
        (None, None, "2 times as fast, and no price of either is known"),
        (400, None, "2 times as fast for $400 against no known price"),
        (None, 400, "2 times as fast for no known price against $400"),
    ],
)
def test_pools_without_a_price_are_told_as_such(theirs, mine, says):
    """The better one was left to others, and nobody knows what one or both cost."""
    better, taken = run("a", 5, theirs), run("b", 10, mine)
    ranking = replace(ranked([better, taken]), winner=taken, because="loses 100 % against a")
    told = {each.pool: each.reason for each in judged([better, taken], ranking, Goal.TIME, "USD")}
    assert told["a"] == f"5 h: {says}"


def test_speed_that_two_digits_do_not_show_is_none():
    bound = {"bound_by": Resource.INPUT, "own_spread": 0.0}
    told = words(run("b200", 9.999, 900, **bound), run("h100", 10, 400, **bound))
    hardly = "hardly faster for 2.25 times the cost ($900 against $400)"
    assert f"b200 would be {hardly}" in told["h100"] or hardly in told["b200"]
    assert all("1 times" not in each for each in told.values())


def test_the_reason_names_the_rule_that_decided_however_unsure_the_times_are():
    """Level is what nobody knows; what decides beyond 30 % is what idle accelerators are worth."""
    unsure = {"own_spread": 0.3, "bound_by": Resource.INPUT}
    fast, slow = run("h100", 11.4, 315, **unsure), run("l40s", 20, 144, **unsure)
    assert len(ranked([fast, slow]).level) == 2
    told = words(fast, slow)
    assert told["l40s"].startswith("20 h for $144; h100 would be 1.75 times as fast")
    assert told["h100"].startswith("11.4 h: 1.75 times as fast for 2.19 times the cost")
    for each in told.values():
        assert each.endswith("such speed worth 1.32 times the cost at most")
        assert "level" not in each
        assert "significant" not in each


def test_equals_whose_accelerators_stand_idle_are_still_told_as_equals():
    waits = {"bound_by": Resource.INPUT}
    told = words(run("h200", 9.6, 500, **waits), run("h100", 10, 400, **waits))
    assert told["h100"].startswith("level with h200 (9.6 h; not significant")


def test_what_stays_where_it_runs_was_not_chosen_for_idleness():
    waits = {"bound_by": Resource.HOST}
    ranking = ranked([run("b200", 5, 900, **waits), run("h100", 10, 400)])
    assert ranking.is_for_idleness
    assert not replace(ranking, stays=True).is_for_idleness
    assert not replace(ranking, because="for others").is_for_idleness
    assert not replace(ranking, winner=ranking.ordered[0]).is_for_idleness


@pytest.mark.parametrize("goal", [Goal.TIME, Goal.COST])
def test_reasons_of_a_tie(goal):
    told = words(run("b", 10, 400, goal), run("a", 10, 400, goal), goal=goal)
    measure = "10 h" if goal is Goal.TIME else "$400"
    assert told["a"].endswith(f": {measure}; the same as b, and first by name")
    assert told["b"] == f"{measure}, the same as a, which comes first by name"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"because": "others would lose 700 % away from it"}, "and left to other workloads"),
        ({"stays": True}, "where it runs"),
    ],
)
def test_of_a_tie_the_name_is_not_told_where_it_did_not_decide(changes, why):
    first, second = run("a", 10, 400), run("b", 10, 400)
    ranking = replace(ranked([first, second]), winner=second, **changes)
    told = {each.pool: each.reason for each in judged([first, second], ranking, Goal.TIME, "USD")}
    assert told["a"] == f"10 h, the same as b, {why}"


def test_nothing_is_told_to_be_the_cheapest_where_no_price_is_known():
    told = words(run("a", 10, None, Goal.COST), run("b", 12, None, Goal.COST), goal=Goal.COST)
    assert told["a"] == "at an unknown price; the same as b, and faster"


def test_of_a_tie_whole_domains_are_spared():
    breaks = replace(run("a", 10, 400), broken_accelerators=72)
    told = words(breaks, run("b", 10, 400))
    assert told["a"] == "10 h, the same as b, which breaks no whole domain"


@pytest.mark.parametrize(
    ("worse", "better", "edge"),
    [
        ({"capacity_type": "Spot"}, {"capacity_type": "OnDemand"}, ("is Spot", "is OnDemand")),
        ({"capacity_type": "Spot"}, {"capacity_type": "Reserved"}, ("is Spot", "is Reserved")),
        ({"energy_joules": 2.0}, {"energy_joules": 1.0}, ("takes less energy",) * 2),
    ],
)
def test_of_equals_the_more_assured_and_then_the_thriftier_wins_whatever_its_name(
    worse, better, edge
):
    first = replace(run("a", 10, 400, Goal.COST), **worse)
    second = replace(run("b", 10, 400, Goal.COST), **better)
    assert winner(first, second, goal=Goal.COST) == "b"
    told = words(first, second, goal=Goal.COST)
    assert told["b"].startswith("cheapest: $400; the same as a, ")
    assert told["b"].endswith(edge[0])
    assert told["a"] == f"$400, the same as b, which {edge[1]}"


def test_of_equals_the_one_with_more_of_the_replicas_that_are_needed_wins():
    """Both miss the targets, and the name decided whether one replica or three would run."""
    lacks = {"weighed_replicas": 7, "too_few": "needs 7 replicas"}
    one = replace(run("a", 10, 400, Goal.COST), replicas=1, **lacks)
    three = replace(run("b", 10, 400, Goal.COST), replicas=3, **lacks)
    assert winner(one, three, goal=Goal.COST) == "b"
    told = words(one, three, goal=Goal.COST)["a"]
    assert told.endswith("the same as b, which has room for more of the replicas that it needs")


def test_reasons_say_equal_prices_once():
    told = words(run("h200", 9.6, 400), run("h100", 10, 400))
    doubt = "(not significant: 4.2 % apart, ±9.8 %)"
    assert told["h100"] == f"10 h, 4.2 % more than h200 {doubt}"
    assert told["h200"].endswith(f"next is h100 with 10 h {doubt}")


def test_a_tie_tells_the_prices_that_decided_it():
    told = words(run("h200", 10, 500), run("h100", 10, 400))
    assert told["h100"] == "fastest: 10 h; next is h200 with 10 h, for $500 against $400"
    assert told["h200"] == "10 h against 10 h, for $500 against $400"


def test_reasons_beside_a_pool_that_costs_nothing():
    told = words(run("b200", 5, 900, bound_by=Resource.HOST), run("own", 10, 0.0))
    idle = "its accelerators would wait for the host"
    assert told["b200"] == f"5 h: 2 times as fast for $900 against $0.00, and {idle}"


def test_a_difference_too_small_to_print():
    told = words(run("a", 10, 400, Goal.COST), run("b", 10, 400.001, Goal.COST), goal=Goal.COST)
    assert told["b"] == "$400, hardly more than a"


def test_only_candidate():
    assert words(run("a", 10, 400))["a"] == "the only pool that can take it now: 10 h"


def test_little_is_given_up_for_money_however_little_is_known():
    unsure = {"own_spread": 1.0}
    fast = run("fast", 10, 900, **unsure)
    assert winner(fast, run("slow", 12.9, 400, **unsure)) == "slow"
    assert winner(fast, run("slow", 13.1, 400, **unsure)) == "fast"
    assert not ranked([fast, run("slow", 13.1, 400, **unsure)]).is_significant


def test_a_cheaper_pool_that_is_left_to_others_is_no_faster_one():
    """$13.75 per hour was "2.91 times as fast for 0.344 times the cost" of $40.00."""
    better, taken = (
        replace(run(name, cost, cost), total_seconds=None, objective_value=cost)
        for name, cost in (("a", 13.75), ("b", 40.0))
    )
    ranking = replace(ranked([better, taken]), winner=taken, because="loses 191 % against a")
    told = {each.pool: each.reason for each in judged([better, taken], ranking, Goal.COST, "USD")}
    assert "against $40.00" in told["a"] and told["a"].endswith(", and left to other workloads")
    assert "fast" not in told["a"]
