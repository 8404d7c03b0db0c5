"""What slips through admission: told to its author, and no trouble to anybody else."""

from __future__ import annotations

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.bad_input import ACCEPTED, BASES, Accepted
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import Operated, condition, h100_node, training_job

pytestmark = pytest.mark.apiserver

LEAF = "network.topology.nvidia.com/leaf"
TRAINING = {"globalBatchSize": 64, "sequenceLength": 4096}
_BASE_NAMES = {document["metadata"]["name"] for document in BASES.values()}


def placed_in(namespace: str, case: Accepted) -> Object:
    """The case's object under a name of its own, in the namespace if its kind has one."""
    metadata = dict(case.document["metadata"])
    if metadata["name"] in _BASE_NAMES:
        metadata["name"] = case.name.lower()
    if case.document["kind"] != "AcceleratorPool":
        metadata["namespace"] = namespace
    return {**case.document, "metadata": metadata}


def test_every_accepted_oddity_gets_its_answer_and_blocks_nobody(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    operator.await_idle(2)
    objects = [placed_in(namespace, case) for case in ACCEPTED]
    pools = [each for each in objects if each["kind"] == "AcceleratorPool"]
    try:
        for document in objects:
            operator.client.create(document)
        for case, document in zip(ACCEPTED, objects, strict=True):
            operator.wait(document, _is_told)
            if case.condition is not None:
                type_, status, reason = case.condition
                seen = operator.wait_condition(document, type_, status, reason)
                assert condition(seen, type_)["message"], case.name
        good = operator.client.create(training_job(namespace, "good", 8))
        operator.wait_condition(good, "Planned", "True")
        operator.settle()
    finally:
        for pool in pools:
            operator.client.delete(pool)
    assert operator.process.is_running
    assert '"level": "error"' not in operator.process.log.read_text()


def _is_told(document: Object) -> bool:
    told = document.get("status", {}).get("observedGeneration")
    return bool(told == document["metadata"]["generation"])


H200 = {"count": 8, "products": ["H200-SXM-141GB"]}
IMPOSSIBLE: dict[str, tuple[Object, str]] = {
    "level": (
        {"placement": {"topology": {"mode": "Required", "level": f"{LEAF}s"}}},
        f"no node of any pool has the label {LEAF}s; did you mean {LEAF}?",
    ),
    "past": (
        {"objective": {"deadline": "2020-01-01T00:00:00Z"}},
        "the deadline (2020-01-01 00:00 UTC) has passed; nearest that would work: a deadline ",
    ),
    "hurried": (
        {"accelerators": {"min": 1, "max": 8}, "training": {**TRAINING, "tokens": "1P"}}
        | {"objective": {"deadline": "2030-01-01T00:00:00Z"}},
        "longer than until the deadline (2030-01-01 00:00 UTC);"
        " nearest that would work: a deadline ",
    ),
    "product": (
        {"accelerators": H200},
        "no pool has H200-SXM-141GB; h100-sxm5-80gb-8-",
    ),
}
"""What the cluster cannot give: the spec, and what its author is told."""


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_the_cluster_cannot_give_is_told_with_what_it_can(
    operator: Operated, namespace: str, nodes: NodeFactory, name: str
) -> None:
    nodes([h100_node(8, {LEAF: "leaf-0"}), h100_node(8, {LEAF: "leaf-0"})])
    operator.await_idle(2)
    spec, told = IMPOSSIBLE[name]
    refused = operator.client.create(training_job(namespace, name, 16, **spec))
    good = operator.client.create(training_job(namespace, "good", 8))
    operator.wait_condition(good, "Placed", "True")
    operator.wait_condition(refused, "Planned", "False", "NoFeasiblePool")
    operator.wait_message(refused, "Planned", told)
    operator.settle()
