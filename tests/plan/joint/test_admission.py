"""What is open to a workload, and the sentence where nothing is."""

import pytest

from poolwise.plan.joint.admission import Gate, worthwhile
from poolwise.plan.joint.problem import Rules
from tests.plan.joint.cluster_given import HOUR, job, option, pool


def gate(*pools, rules=None, now=0.0):
    return Gate(pools or (pool("p", 0, 0), pool("q", 8, total=8)), rules or Rules(), now)


def test_a_full_pool_is_open_since_it_may_empty():
    assert len(gate().admit(job("w", option("p", 1, pods=2))).options) == 1


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (job("w"), "no pool is offered to it"),
        (job("w", option("gone", 1)), "gone: there is no such pool"),
        (
            job("w", option("p", 1, pods=3)),
            "p: needs 3 pods of 8, has room for 2 when empty",
        ),
        (
            job("w", option("p", 1, pods=2, level="rack")),
            "p: needs 2 pods of 8 in one rack, has room for 0 when empty",
        ),
        (
            job("w", option("p", 1, problem="needs 91.2 GiB, L40S has 44.0 usable")),
            "p: needs 91.2 GiB, L40S has 44.0 usable",
        ),
        (
            job("w", option("p", 30), option("q", 20), deadline=10 * HOUR),
            "q: would take 20 h, the deadline is in 10 h; p: would take 30 h",
        ),
        (job("w", option("p", 30), deadline=-HOUR), "the deadline passed 60 min ago"),
        (
            job("w", option("p", 10, cost_per_hour=50.0), max_cost=400.0),
            "p: would cost $500, maxCost is $400",
        ),
    ],
)
def test_a_refusal_says_what_is_missing(workload, said):
    found = gate().admit(workload)
    assert found.options == ()
    assert said in found.refusal


def test_the_nearest_miss_is_named_first_and_kept():
    found = gate().admit(job("w", option("p", 30), option("q", 11), deadline=10 * HOUR))
    assert found.nearest is not None
    assert found.nearest.pool == "q"


@pytest.mark.parametrize(
    ("limits", "shares"),
    [
        pytest.param({"max_cost": 500.0}, {}, id="maxCost"),
        pytest.param({"deadline": 10 * HOUR}, {}, id="deadline"),
        pytest.param({}, {"research": 0.5}, id="share-of-a-namespace"),
    ],
)
def test_what_just_keeps_its_limit_is_open(limits, shares):
    """Of 16 accelerators 8, for 10 hours at 50 an hour."""
    given = gate(pool("p", 8, 8), rules=Rules(namespace_shares=shares))
    asked = option("p", 10, cost_per_hour=50.0)
    assert given.admit(job("w", asked, **limits)).options == (asked,)


def test_only_what_breaks_a_limit_is_closed():
    found = gate().admit(job("w", option("p", 30), option("q", 9), deadline=10 * HOUR))
    assert [each.pool for each in found.options] == ["q"]


def test_a_share_closes_what_is_larger_than_all_of_it():
    half = Rules(namespace_shares={"research": 0.5})
    found = gate(rules=half).admit(job("w", option("p", 1, pods=2), option("q", 1)))
    assert [each.pool for each in found.options] == ["q"]
    refused = gate(rules=half).admit(job("w", option("p", 1, pods=2)))
    assert "needs 16, the share of namespace research is 12 of 24" in refused.refusal


def counts(hours_by_count, efficiency=0.5):
    options = [option("p", hours, each=count) for count, hours in hours_by_count.items()]
    return [each.accelerators for each in worthwhile(options, efficiency)]


def test_counts_grow_as_long_as_the_last_accelerators_yield_their_share():
    assert counts({1: 8, 2: 4, 4: 2, 8: 1}) == [1, 2, 4, 8]
    assert counts({1: 8, 2: 4, 4: 3.5, 8: 3.4}) == [1, 2]
    assert counts({1: 8, 2: 4, 4: 3.5, 8: 3.4}, efficiency=0.01) == [1, 2, 4, 8]


def test_a_later_count_may_pay_for_one_that_was_left_out():
    assert counts({1: 8, 2: 7.9, 4: 2}) == [1, 4]


def test_a_limit_that_just_pays_is_no_limit_too_low():
    """3 hours at $1.1 are $3.3, and in binary fractions a little more."""
    workload = job("w", option("p", 3, cost_per_hour=1.1), max_cost=3.3)
    assert gate().admit(workload).options


def test_a_share_is_of_whole_accelerators_whatever_its_last_digits():
    """0.29 of 100 are 29, though their product is a little less in binary fractions."""
    given = gate(pool("p", 100, total=100), rules=Rules(namespace_shares={"research": 0.29}))
    assert given.limit("research") == 29
