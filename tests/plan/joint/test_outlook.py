"""What starts mean for who is left waiting."""

import math

from poolwise.plan.joint.bids import bid
from poolwise.plan.joint.items import Choice, Taken
from poolwise.plan.joint.outlook import outlook
from poolwise.plan.joint.problem import Rules
from poolwise.plan.joint.rooms import Rooms
from poolwise.plan.joint.timeline import Timeline
from poolwise.plan.joint.walk import Walk
from tests.plan.joint.cluster_given import HOUR, job, option, pool


def seen(work, start, *pools):
    """The outlook once the workloads of ``start`` have the node that it names."""
    bids = [bid(each, each.options, {}, 0.0, Rules()) for each in work]
    options = {each.key: each.options[0] for each in work}
    taken = {key: Taken(Choice(options[key], 1.0), {node: 1}) for key, node in start.items()}
    walk = Walk(Rooms(pools), Timeline(pools, (), 0.0), 0.0, {}, {})
    return outlook(bids, taken, {}, walk)


def test_the_short_one_first_is_less_delay_for_both():
    work = [job("short", option("p", 1)), job("long", option("p", 10))]
    short = seen(work, {"short": "p-0"}, pool("p", 8))
    long = seen(work, {"long": "p-0"}, pool("p", 8))
    assert short.is_clearly_less(long)
    assert not long.is_clearly_less(short)
    assert not short.is_clearly_less(short)
    assert math.isclose(long.delay_seconds - short.delay_seconds, 9 * HOUR)


def test_what_is_left_out_may_still_start_beside_the_others():
    work = [job("one", option("p", 1)), job("two", option("p", 2))]
    pools = (pool("p", 8, 8),)
    assert seen(work, {"one": "p-0"}, *pools) == seen(work, {"one": "p-0", "two": "p-1"}, *pools)


def test_who_waits_for_what_nobody_can_tell_counts_before_any_delay():
    work = [job("runs", option("p", 1)), job("never", option("held", 1))]
    pools = (pool("p", 8), pool("held", 0))
    assert seen(work, {"runs": "p-0"}, *pools).lost == 1
    assert seen(work[:1], {}, *pools).is_clearly_less(seen(work, {"runs": "p-0"}, *pools))
