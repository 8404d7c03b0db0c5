"""Children that wait: what changes in place, what is made anew, and what is left to Kueue."""

import copy
from typing import Any

import pytest

from poolwise.plan.kueue.child import is_superseded, moves, queued, templates
from poolwise.plan.kueue.record import Queueing
from poolwise.plan.kueue.words import GATE, PLANNER, QUEUE_LABEL
from poolwise.plan.names import PLACEMENT, POOL

PLACED = (
    '{"accelerator":"%s","claim":{"n":[8,0,0]},"count":8,"generation":%d,"pool":"%s",'
    '"queue":{"name":"research"},"resource":"nvidia.com/gpu","shape":{},"version":1}'
)


def child(kind="Job", pool="a", selector=None, queue=None, accelerator="H100", generation=1):
    pod: dict[str, Any] = {
        "nodeSelector": selector or {"pool": pool},
        "containers": [{"name": "train"}],
    }
    template = {"metadata": {"labels": {POOL: pool, "owner": "x"}}, "spec": pod}
    spec: dict[str, Any] = {"template": template}
    if kind == "JobSet":
        jobs = [{"name": "node", "template": {"spec": {"parallelism": 2, "template": template}}}]
        spec = {"replicatedJobs": jobs}
    metadata = {
        "name": "train",
        "labels": {POOL: pool},
        "annotations": {PLACEMENT: PLACED % (accelerator, generation, pool)},
    }
    made = {"kind": kind, "metadata": metadata, "spec": spec}
    return queued(copy.deepcopy(made), queue or Queueing("research"), None)


def live(made):
    """As the API server has it, with what it and Kueue added."""
    found = copy.deepcopy(made)
    found["metadata"]["resourceVersion"] = "12"
    found["metadata"]["labels"]["added"] = "x"
    for template in templates(found):
        template["spec"]["restartPolicy"] = "Never"
        template["metadata"]["labels"]["added"] = "x"
    return found


def patched(document, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = patched(result.get(field), value)
    return result


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_nothing_changes_where_nothing_differs(kind):
    made = child(kind)
    assert moves(live(made), made) == {}
    assert not is_superseded(live(made), made)


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_a_move_changes_the_way_to_the_nodes_and_nothing_else(kind):
    here, there = child(kind, "a", {"pool": "a", "old": "x"}), child(kind, "b", {"pool": "b"})
    before = live(here)
    assert not is_superseded(before, there)
    after = patched(before, moves(before, there))
    (template,) = templates(after)
    assert template["spec"]["nodeSelector"] == {"pool": "b"}
    assert template["metadata"]["labels"] == {POOL: "b", "owner": "x", "added": "x"}
    assert template["spec"]["restartPolicy"] == "Never"
    assert after["metadata"]["labels"][POOL] == "b"
    assert (
        after["metadata"]["annotations"][PLACEMENT] == there["metadata"]["annotations"][PLACEMENT]
    )
    assert after["spec"]["suspend"] is True
    assert moves(before, there)["metadata"]["resourceVersion"] == "12"


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_a_move_is_one_that_kueue_notices(kind):
    """It compares containers, counts and tolerations; the node selector it does not."""
    (here,), (there,) = templates(child(kind, "a")), templates(child(kind, "b"))
    assert here["spec"]["tolerations"] != there["spec"]["tolerations"]


def test_a_gate_is_lifted_without_touching_the_pods():
    gated = child(queue=Queueing("research", is_gated=True))
    assert gated["metadata"]["annotations"][GATE] == PLANNER
    free = child()
    free["metadata"]["annotations"][PLACEMENT] += " "
    change = moves(live(gated), free)
    assert change["metadata"]["annotations"][GATE] is None
    assert "spec" not in change


@pytest.mark.parametrize(
    "other",
    [
        {"generation": 2},
        {"queue": Queueing("")},
    ],
    ids=["spec", "no-queue"],
)
def test_other_pods_or_no_queue_need_another_child(other):
    desired = child(**other)
    if "queue" in other:
        del desired["metadata"]["labels"][QUEUE_LABEL]
    assert is_superseded(live(child()), desired)


def test_a_child_that_runs_is_left_alone():
    running = live(child())
    running["spec"]["suspend"] = False
    assert moves(running, child(pool="b")) == {}
    assert not is_superseded(running, child(generation=2))


@pytest.mark.parametrize("junk", ["", "{", "[]", '{"claim": 3}', '{"claim": {}, "queue": 1}'])
def test_a_record_that_nobody_can_read_is_made_anew(junk):
    spoilt = live(child())
    spoilt["metadata"]["annotations"][PLACEMENT] = junk
    assert is_superseded(spoilt, child())


def test_services_are_in_no_queue():
    service = {"kind": "Service", "metadata": {}, "spec": {}}
    assert queued(service, Queueing("research"), 10) is service
