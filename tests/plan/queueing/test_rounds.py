"""Who starts in a pass beside those who started in it before, and who must not."""

from poolwise.plan.decision import Kind
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    gpu_nodes,
    h100,
    job,
    key,
    l40s,
    observed,
    outcomes,
    running,
    service,
)
from tests.plan.test_cluster_moves import HIGH, KEEPS, decided, started

APART = service(
    "apart",
    age_seconds=9,
    scaling={"redundancy": 1},
    accelerators={"perReplica": 1, "products": ["L40S"]},
)
"""Breaks two nodes where the queue, which counts accelerators, packs its replicas on one."""


def gang_and_rival(*more):
    """Sixteen H100 of which eight run for two hours, four L40S on each of two nodes, and a run that
    had counted on a whole one of these."""
    nodes = [*h100(2), *gpu_nodes("l40s", 2, "NVIDIA-L40S", per_node=4)]
    on_h100 = {"count": 8, "products": ["H100"]}
    busy = job("busy", age_seconds=9000, accelerators=on_h100)
    children = running(nodes, busy)
    rival = job(
        "rival",
        accelerators={"count": 4, "products": ["H100", "L40S"]},
        training={"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "50G"},
    )
    return outcomes(nodes, started(busy, nodes, 1.0), APART, rival, *more, children=children)


def test_what_a_gang_collects_is_not_given_away_in_a_later_round():
    gang = job("gang", age_seconds=8000, accelerators={"count": 16, "products": ["H100"]})
    found = gang_and_rival(gang)
    assert len(found["apart"].claim.accelerators_by_node) == 2
    assert not found["gang"].placed
    assert not found["rival"].placed
    alone = gang_and_rival()
    assert alone["rival"].chosen.accelerator == "H100-SXM5-80GB"


def test_one_workload_alone_gets_its_way_by_stopping_others():
    """The next pass sees what that frees: in another round it would stop for the second as well."""
    lows = [job(name, 8, age_seconds=7200, **KEEPS) for name in ("low", "other")]
    highs = [
        job(
            name,
            accelerators={"count": 8, "products": ["H100"]},
            age_seconds=age,
            priorityClassName="high",
        )
        for name, age in (("high", 2), ("higher", 1))
    ]
    two = {"scaling": {"minReplicas": 2}}
    l40s_alone = {"products": ["L40S"]}
    services = [
        service("first", age_seconds=9, accelerators={"perReplica": 1, **l40s_alone}, **two),
        service("second", objective={"goal": "Time"}, accelerators=l40s_alone, **two),
    ]
    nodes = [*h100(2), *l40s(1, per_node=4)]
    seen = observed(
        nodes,
        *(_for_days(started(each, nodes, 2.0)) for each in lows),
        *highs,
        *services,
        children=running(h100(2), *lows),
        priority_classes=HIGH,
    )
    answer = decided(seen, settings=Settings(may_preempt=True))
    (stopped,) = (plan for plan in answer.outcomes.values() if plan.vacates)
    assert list(answer.standing.promised) == ["research/high"]
    (promise,) = answer.standing.promised.values()
    assert answer.look_again_at.timestamp() == promise.until, "else all wait on"
    assert "stopped for research/high," in stopped.reason
    assert answer.outcomes[key("first", Kind.INFERENCE_SERVICE)].placed
    calm = decided(seen, settings=Settings()).outcomes
    assert calm[key("second", Kind.INFERENCE_SERVICE)].placed, "else no other round has a reason"


def _for_days(document):
    status = {**document["status"], "plan": {"totalSeconds": 300_000.0}}
    return {**document, "status": status}
