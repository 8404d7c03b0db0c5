"""AcceleratorPools as objects of the cluster: whose they are, and what others made of them."""

from __future__ import annotations

import asyncio
import math
from functools import partial

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import ACCELERATOR_POOLS
from poolwise.cluster.writer import Writer
from poolwise.handlers.pools import Pools
from tests.fake_kube import FakeKube
from tests.handlers.histories.documents import declared_pool
from tests.handlers.shell import Shell, h100_node


def test_a_pool_that_a_person_has_made_since_the_pass_is_not_written_over() -> None:
    """By the name of one that was discovered; its status is told alone."""
    shell = Shell()
    shell.put(h100_node())
    shell.run()
    (discovered,) = shell.kube.all(ACCELERATOR_POOLS)
    name = discovered["metadata"]["name"]
    kube, cache = FakeKube(), Cache()
    persons = declared_pool(name, nodeSelector={"of": "nobody"})
    cache.put(ACCELERATOR_POOLS, kube.put(persons))
    writer = Writer(kube, cache, lambda: math.inf)
    asyncio.run(Pools(cache, writer, shell.engine.planner, utc_now).reconcile(name))
    assert kube.writes == [f"patch status acceleratorpools/{name}"]
    (kept,) = kube.all(ACCELERATOR_POOLS)
    assert kept["spec"] == persons["spec"]


def test_a_pool_that_was_found_is_somebodys_once_its_label_is_gone() -> None:
    shell = Shell()
    shell.put(h100_node(), h100_node())
    shell.run()
    [found] = shell.kube.all(ACCELERATOR_POOLS)
    priced = {**found, "spec": {**found["spec"], "price": {"perNodeHour": "7"}}}
    mine = {**priced, "metadata": {**found["metadata"], "labels": {}}}
    for given, expected in ((priced, (True, False)), (mine, (False, True))):
        shell.run(partial(shell.put, given))
        [told] = shell.kube.all(ACCELERATOR_POOLS)
        is_unread = any(each["type"] == "SpecRead" for each in told["status"]["conditions"])
        is_at_their_price = told["status"]["price"]["perNodeHour"] == 7
        assert (is_unread, is_at_their_price) == expected
