"""Replicas that a pass gives to a service that runs count for the next pass before they are
written: here and on further pools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import DEPLOYMENTS
from poolwise.handlers.planner import Planner
from poolwise.handlers.reconciler import manifests
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.names import POOL
from poolwise.plan.observed import Decisions, Object
from poolwise.settings import Settings
from tests.handlers.test_planner import Recorded
from tests.plan.cluster_given import decided, h100, key, l40s, service

CHAT = key("chat", Kind.INFERENCE_SERVICE)
CHAT_RUNS = service("chat", scaling={"maxReplicas": 12})
NODES = [*h100(1, per_node=2), *l40s(1, per_node=4)]


def made(answer: Decisions) -> list[Object]:
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    children = manifests(CHAT_RUNS, plan, answer, Settings())
    return [each for each in children if each["kind"] == "Deployment"]


def live(answer: Decisions) -> Object:
    """What runs it on its own pool."""
    child = made(answer)[-1]
    return {**child, "metadata": {**child["metadata"], "uid": "deployment"}}


PLACED = decided(NODES, CHAT_RUNS)
ONE = live(PLACED)


def scaled(replicas: int, further: int = 0, runs: Object = ONE) -> Decisions:
    here = made(PLACED)[-1]["metadata"]["labels"][POOL]
    others = {each.name: further for each in PLACED.pools if further and each.name != here}
    scaling, overflow = {CHAT: replicas}, {CHAT: others}
    answer: Decisions = decided(
        NODES, CHAT_RUNS, children=[runs], scaling=scaling, overflow=overflow
    )
    return answer


def counted(answers: Sequence[Decisions], runs: Object = ONE) -> list[list[int]]:
    """Replicas that count after each pass, and once what each has decided is carried out."""
    cache = Cache()
    cache.put(DEPLOYMENTS, runs)
    coming = iter(answers)
    planner = Planner(
        cache,
        Recorded(),
        lambda _: next(coming),
        lambda plan, decisions: tuple(made(decisions)),
        Settings(),
        Metrics(),
    )

    def replicas() -> list[int]:
        return sorted(each["spec"]["replicas"] for each in cache.observed().children)

    async def passes() -> list[list[int]]:
        found = []
        for _ in answers:
            await planner.plan()
            found.append(replicas())
        for each in answers:
            planner.settle(each.outcomes[CHAT])
            found.append(replicas())
        return found

    return asyncio.run(passes())


def test_what_is_added_counts_until_it_is_written():
    assert counted([scaled(2)]) == [[2], [1]]


def test_what_is_added_while_an_earlier_number_is_written_counts_on():
    first = scaled(1, further=1)
    assert counted([first, scaled(2)]) == [[1, 1], [2], [2], [1]]


def test_what_is_taken_away_counts_until_it_is_gone():
    two = live(scaled(2))
    fewer = scaled(1, runs=two)
    assert live(fewer)["spec"]["replicas"] == 1
    assert counted([fewer], two) == [[2], [2]]


def test_what_is_added_on_a_further_pool_counts():
    assert counted([scaled(2, further=2)]) == [[2, 2], [1]]
