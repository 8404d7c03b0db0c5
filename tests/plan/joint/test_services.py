"""Services among runs: what they leave to others, and what they are charged for."""

from dataclasses import replace

import pytest

from poolwise.plan.joint.planning import plan
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


def indifferent(**more):
    """A service of one accelerator, for which the first pool is hardly better."""
    return job(
        "chat",
        option("a", None, each=1, objective=aims(1)),
        option("b", None, each=1, objective=aims(1 + 1e-6)),
        **more,
    )


@BOTH
@pytest.mark.parametrize("level", ["", "rack"])
def test_a_service_leaves_a_gang_the_nodes_it_cannot_do_without(optimise, level):
    """It gives nothing back: the gang waited for ever for the two nodes of the first pool, or of
    its one rack, which others take first in either case."""
    gang = job("gang", option("a", 100, pods=2, level=level))
    short = job("short", option("b", 50), option("a", 40))
    pools = [pool("a", 8, 8, rack=2), pool("b", 8)]
    found = plan(problem(pools, indifferent(), gang, short), optimise)
    assert starts(found) == {"chat": "b", "short": "a"}
    assert by_key(found)["gang"].starts == 40 * HOUR
    assert by_key(found)["chat"].because.startswith("level with a")


@BOTH
def test_a_gang_alone_keeps_its_nodes_beside_a_queue(optimise):
    """Many wait for the other pool: each for a while, and the gang would for ever."""
    runs = [job(f"run-{at}", option("b", 1, each=2)) for at in range(20)]
    work = [indifferent(), job("gang", option("a", 100)), *runs]
    found = plan(problem([pool("a", 8), pool("b", 8)], *work), optimise)
    assert starts(found).items() >= {"chat": "b", "gang": "a"}.items()


def loses(objective):
    """A service whose objective is 1 on the pool ``a``, and so much on ``b``."""
    return job(
        "chat",
        option("a", None, each=1, objective=aims(1)),
        option("b", None, each=1, objective=aims(objective)),
    )


@BOTH
def test_a_service_that_would_lose_by_it_leaves_nothing_to_gangs(optimise):
    gang = job("gang", option("a", 100))
    found = plan(problem([pool("a", 8), pool("b", 8)], loses(9), gang), optimise)
    assert starts(found)["chat"] == "a"


@BOTH
@pytest.mark.parametrize(("loss", "gangs", "where"), [(1.9, 1, "b"), (2.9, 1, "a"), (2.9, 2, "b")])
def test_a_service_loses_a_day_at_most_for_each_that_could_never_start(
    optimise, loss, gangs, where
):
    """Without a price nobody had told it of the gangs: they waited for ever for nine tenths."""
    work = [job(f"gang-{at}", option("a", 1, pods=2)) for at in range(gangs)]
    found = plan(problem([pool("a", 8, 8), pool("b", 8)], loses(loss), *work), optimise)
    assert starts(found)["chat"] == where


def waits_for_a_third(count=1):
    """Of what is free nothing would do."""
    busy = running("busy", option("b200", 5), {"b200-0": 1})
    return [busy, *(job(f"third-{at}", option("b200", 3)) for at in range(count))]


@BOTH
def test_a_pool_that_a_service_fills_by_half_is_not_scarce_for_who_waits_elsewhere(optimise):
    chat = job(
        "chat",
        option("spot", None, each=4, objective=aims(1)),
        option("l4", None, each=4, objective=aims(2.5)),
    )
    bound = job("bound", option("spot", None, objective=aims(1)))
    pools = [pool("spot", 8, 8), pool("l4", 8), pool("b200", 0)]
    found = plan(problem(pools, bound, chat, *waits_for_a_third()), optimise)
    assert starts(found) == {"bound": "spot", "chat": "spot"}
    assert {each.pool for each in found.prices if each.delay} == {"b200"}


@BOTH
def test_a_month_in_a_pool_with_room_is_not_what_those_elsewhere_wait_for(optimise):
    tune = job(
        "tune",
        option("spot", 1, objective=aims(1)),
        option("l4", 1.5, objective=aims(1.5)),
    )
    pools = [pool("spot", 8, 8), pool("l4", 8), pool("b200", 0)]
    month = job("month", option("spot", 720))
    found = plan(problem(pools, month, tune, *waits_for_a_third(10)), optimise)
    assert starts(found) == {"month": "spot", "tune": "spot"}


@BOTH
def test_a_service_elsewhere_takes_nothing_from_the_order_of_a_queue(optimise):
    """It alone had made its pool scarce, and all others free: runs had no length any more."""
    work = [job("long", option("p", 9)), job("short", option("p", 1))]
    chat = job("chat", option("q", None, each=4))
    found = plan(problem([pool("p", 8), pool("q", 8)], chat, *work), optimise)
    assert starts(found) == {"chat": "q", "short": "p"}


@BOTH
def test_what_a_service_takes_is_not_there_for_runs(optimise):
    """It leaves one node of four, as many as the other pool has: what it takes is no day of work
    on all of them."""
    chat = job("chat", option("h100", None, pods=3))
    runs = [job(f"run-{at}", option("h100", 2), option("a100", 3)) for at in range(4)]
    found = plan(problem([pool("h100", 8, 8, 8, 8), pool("a100", 8)], chat, *runs), optimise)
    dear = {each.pool: each.delay for each in found.prices}
    assert dear["h100"] / dear["a100"] == pytest.approx(1.5, rel=0.07)


@BOTH
@pytest.mark.parametrize(("hours", "where"), [(0.25, "cheap"), (100, "dear")])
def test_a_service_is_charged_for_no_longer_than_others_wait(optimise, hours, where):
    """Six runs that are done within the hour had sent it to a pool of twice the cost, as if they
    waited for a day; those that take longer still do."""
    chat = job(
        "chat",
        option("cheap", None, each=4, objective=aims(1)),
        option("dear", None, each=4, objective=aims(2)),
    )
    runs = [job(f"run-{at}", option("cheap", hours, each=4)) for at in range(6)]
    found = plan(problem([pool("cheap", 8, 8), pool("dear", 8)], chat, *runs), optimise)
    assert starts(found)["chat"] == where


@BOTH
def test_passes_in_between_charge_a_service_for_as_long(optimise):
    """They work out no prices: those of the last pass tell in what time all was to be done."""
    chat = job(
        "chat",
        option("cheap", None, each=4, objective=aims(1)),
        option("dear", None, each=4, objective=aims(2)),
    )
    runs = [job(f"run-{at}", option("cheap", 0.25, each=4)) for at in range(6)]
    given = problem([pool("cheap", 8, 8), pool("dear", 8)], chat, *runs)
    shares = plan(given, optimise).shares
    assert shares["cheap"].of_all > 0
    assert starts(plan(replace(given, shares=shares), optimise))["chat"] == "cheap"


@BOTH
def test_a_run_spares_nobody_since_it_gives_its_place_back(optimise):
    """Only beside a service is it asked at all who could never start."""
    work = [
        job("chat", option("c", None, each=1)),
        job("gang", option("a", 100, pods=2)),
        job("short", option("a", 1, each=1), option("b", 5, each=1)),
    ]
    pools = [pool("a", 8, 8), pool("b", 8), pool("c", 8)]
    found = plan(problem(pools, *work), optimise)
    assert starts(found) == {"chat": "c", "short": "a"}
    assert by_key(found)["gang"].starts == 1 * HOUR
