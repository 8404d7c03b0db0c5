"""What somebody writes into a discovered pool is not read, and told so with what to do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from poolwise.plan.names import DISCOVERED
from poolwise.plan.pools.objects import pool_object, pool_status
from tests.plan.nodes_given import condition, declared, node, only_pool

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FOO = {"nvidia.com/gpu.product": "NVIDIA-Foo-9000"}
NODES = [node("n", FOO, gpus=8)]
GIVEN: dict[str, Any] = {"accelerator": "L40S", "price": {"perNodeHour": "5"}}


def live(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    """The object of the discovered pool, once somebody wrote into its spec."""
    made = pool_object(only_pool(NODES))
    metadata = {**made["metadata"], "labels": labels, "generation": 2}
    return {**made, "metadata": metadata, "spec": {**made["spec"], **spec}}


def spec_read(resource: dict[str, Any], given: Any = ()) -> list[dict[str, Any]]:
    told = pool_status(resource, only_pool(NODES, given), 0, NOW)["conditions"]
    return [each for each in told if each["type"] == "SpecRead"]


def test_the_advice_of_a_discovered_pool_leads_to_a_pool_that_is_read() -> None:
    _, reason, message = condition(only_pool(NODES), "HardwareKnown")
    assert reason == "UnknownHardware"
    advice = "in spec.accelerator of an AcceleratorPool of yours, with spec.nodeSelector {"
    assert f"{advice}nvidia.com/gpu.product: NVIDIA-Foo-9000}}" in message
    followed = only_pool(NODES, [declared("mine", nodeSelector=FOO, accelerator="L40S")])
    assert (followed.accelerator, len(followed.usable_nodes)) == ("L40S", 1)


def test_where_nothing_tells_nodes_apart_a_label_is_asked_for() -> None:
    bare = [{**each, "metadata": {**each["metadata"], "labels": {}}} for each in NODES]
    message = condition(only_pool(bare), "HardwareKnown")[2]
    assert message.endswith("an AcceleratorPool of yours, with a label to select its nodes by")


def test_a_pool_of_a_persons_is_told_to_name_it_where_it_stands() -> None:
    message = condition(only_pool(NODES, [declared("mine", nodeSelector=FOO)]), "HardwareKnown")[2]
    assert message.endswith("name its hardware in spec.accelerator")


def test_what_a_discovered_pool_is_given_is_told_as_not_read() -> None:
    (told,) = spec_read(live({DISCOVERED: "true"}, **GIVEN))
    assert (told["status"], told["reason"]) == ("False", "DiscoveredPool")
    assert told["message"].startswith("spec.accelerator, spec.price: not read")
    name = only_pool(NODES).name
    assert told["message"].endswith(f"kubectl label acceleratorpool {name} {DISCOVERED}-")
    assert not spec_read(live({DISCOVERED: "true"}))


def test_without_its_label_it_is_a_persons_and_read() -> None:
    mine = live({}, **GIVEN)
    assert not spec_read(mine, [mine])
    pool = only_pool(NODES, [mine])
    assert (pool.name, pool.accelerator) == (only_pool(NODES).name, "L40S")
    assert pool.price is not None and pool.price.per_node_hour == 5.0
