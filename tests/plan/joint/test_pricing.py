"""Duals of the relaxed assignment: scarce pools are dear, and work leaves where it loses least."""

import math

import pytest

from poolwise.plan.joint.pricing import capacity, levels
from tests.plan.joint.cluster_given import HOUR, job, option, pool, running

FAST, SLOW = pool("fast", 8), pool("slow", 8)


def leveled(*workloads, pools=(FAST, SLOW)):
    return levels([(each, each.options) for each in workloads], capacity(pools, ()))


def found(*workloads, pools=(FAST, SLOW)):
    """Shares of the most loaded pools."""
    return leveled(*workloads, pools=pools)[0].shares


def test_what_is_held_without_end_is_nobodys_to_share_out():
    run = running("run", option("fast", 1), {"fast-0": 1})
    serves = running("serves", option("slow", None), {"slow-0": 1})
    foreign = pool("other", 3)
    pools = (pool("fast", 0, 8), pool("slow", 0, 8), foreign)
    assert capacity(pools, [run, serves]) == {"fast": 16, "slow": 8, "other": 3}


def test_shares_add_up_to_the_whole_cluster():
    prices = found(job("a", option("fast", 1), option("slow", 3)))
    assert 8 * prices["fast"] + 8 * prices["slow"] == pytest.approx(1.0)


def test_a_level_tells_in_what_time_its_work_is_done():
    """What a service takes is gone, so that the rest takes longer; who serves is never done."""
    run = job("a", option("fast", 3))
    service = job("s", option("fast", None, each=4))
    (alone,), (beside,) = leveled(run), leveled(run, service)
    assert alone.seconds == pytest.approx(3 * HOUR)
    assert beside.seconds == pytest.approx(6 * HOUR)
    (filled,) = leveled(run, service, job("t", option("fast", None, each=4)))
    assert filled.seconds == math.inf


def test_without_work_nothing_is_loaded():
    assert leveled() == ()


def test_a_service_is_capacity_that_is_gone_and_no_work():
    """It has room, and what is left of the pool is shared out: half of it."""
    service = job("s", option("fast", None, each=4))
    assert leveled(service) == ()
    assert found(service, job("a", option("fast", 1))) == {"fast": pytest.approx(1 / 4)}


def test_a_service_leaves_the_pool_that_runs_need():
    service = job("s", option("fast", None, each=4), option("slow", None, each=4))
    assert found(service, job("a", option("fast", 1))) == {"fast": pytest.approx(1 / 8)}


@pytest.mark.parametrize("each", [8, 6])
def test_services_that_take_all_of_a_pool_make_it_scarce(each):
    both = [job(key, option("fast", None, each=each)) for key in ("s", "t")]
    (level,) = leveled(*(both if each < 8 else both[:1]))
    assert level.shares == {"fast": pytest.approx(1 / 8)}


def test_who_can_run_where_there_is_less_to_do_belongs_there():
    """A month on one pool says nothing of what those wait for who never run there."""
    month = job("month", option("fast", 720))
    either = job("either", option("fast", 1), option("slow", 2))
    first, second = leveled(month, either, job("short", option("slow", 1)))
    assert (first.shares, first.keys) == ({"fast": pytest.approx(1 / 8)}, {"month"})
    assert (second.shares, second.keys) == ({"slow": pytest.approx(1 / 8)}, {"either", "short"})


def test_the_price_ratio_is_the_loss_of_who_is_indifferent():
    """Both types are split at 2 and 4 times; the one in the middle of its pools sets the ratio."""
    twice = [job(f"two-{at}", option("fast", 1), option("slow", 2)) for at in range(10)]
    prices = found(*twice)
    assert prices["fast"] / prices["slow"] == pytest.approx(2.0, rel=0.07)


def test_nobody_pays_for_a_pool_that_nobody_wants():
    prices = found(job("a", option("fast", 1)), job("b", option("fast", 2)))
    assert prices == {"fast": pytest.approx(1 / 8)}


def test_who_loses_least_uses_least_elsewhere():
    loses_little = job("little", option("fast", 10), option("slow", 10.8))
    loses_much = job("much", option("fast", 10), option("slow", 60))
    prices = found(loses_little, loses_much)
    assert prices["slow"] * 10.8 < prices["fast"] * 10
    assert prices["slow"] * 60 > prices["fast"] * 10
