from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.pool import Price
from tests.plan.nodes_given import H100, all_pools, condition, declared, node, only_pool

MACHINE = "node.kubernetes.io/instance-type"


def price(raw: dict[str, Any]) -> Price:
    found = only_pool([raw]).price
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("raw", "dollars", "source"),
    [
        (node("a", {MACHINE: "p5.48xlarge"}, gpus=8), 55.04, "machine type p5.48xlarge: us-east-1"),
        (node("a", H100, gpus=8), 8 * 6.88, "H100-SXM5-80GB: AWS p5.48xlarge us-east-1"),
        (node("a", H100, gpus=7), 8 * 6.88, "H100-SXM5-80GB"),
        (node("a", {MACHINE: "m7i.16xlarge"}), 64 * 0.0504, "machine type m7i.*: us-east-1"),
        (node("a"), 64 * 0.0432, "EPYC-7R13: m6a on demand"),
    ],
    ids=["machine", "accelerators", "one-lost", "family", "cores"],
)
def test_a_shipped_price_says_where_it_is_from(
    raw: dict[str, Any], dollars: float, source: str
) -> None:
    found = price(raw)
    assert found.per_node_hour == pytest.approx(dollars)
    assert found.source.startswith(source)
    assert found.currency == "USD"


def test_a_price_for_other_terms_says_so() -> None:
    spot = {MACHINE: "g6.xlarge", "karpenter.sh/capacity-type": "spot"}
    pool = only_pool([node("a", spot, gpus=1)])
    assert pool.price is not None
    assert pool.price.source.endswith("(the on-demand price: Spot costs less)")
    status, reason, message = condition(pool, "PriceEstimated")
    assert (status, reason) == (True, "OnDemandPrice")
    assert "Spot" in message
    assert "set spec.price" in message


def test_what_a_person_pays_for_other_terms_is_no_estimate() -> None:
    labels = {MACHINE: "g6.xlarge", "karpenter.sh/capacity-type": "spot"}
    spec: dict[str, Any] = {"nodeSelector": labels, "price": {"perNodeHour": "0.3"}}
    pool = only_pool([node("a", labels, gpus=1)], [declared("mine", **spec)])
    assert "PriceEstimated" not in {each.type for each in pool.conditions}


def test_a_pool_without_a_price_says_so() -> None:
    """It never wins where cost decides, and nobody would know why."""
    nodes = [node("a", {"nvidia.com/gpu.product": "NVIDIA-H20"}, gpus=8)]
    pool = only_pool(nodes)
    status, reason, message = condition(pool, "PriceKnown")
    assert (pool.price, status, reason) == (None, False, "NoPrice")
    assert message.endswith(
        "taken last where cost decides: set spec.price in an AcceleratorPool of yours"
    )
    assert pool.price_problem is None, "there is no price that could not be compared"
    unknown = only_pool([node("b", {"nvidia.com/gpu.product": "NVIDIA-Z9000"}, gpus=8)])
    assert "PriceKnown" not in {each.type for each in unknown.conditions}


@pytest.mark.parametrize(
    ("given", "setting", "told"),
    [
        ({"perNodeHour": "13", "currency": "EUR"}, "USD", "€13.00 per node and hour (spec.price)"),
        (None, "EUR", "$55.04 per node and hour (machine type p5.48xlarge"),
    ],
    ids=["spec in euros", "shipped in dollars"],
)
def test_a_price_in_another_currency_is_told_and_not_compared(
    given: dict[str, str] | None, setting: str, told: str
) -> None:
    spec: dict[str, Any] = {"nodeSelector": {MACHINE: "p5.48xlarge"}}
    spec |= {"price": given} if given else {}
    nodes = [node("a", {MACHINE: "p5.48xlarge"}, gpus=8)]
    pool = only_pool(nodes, [declared("mine", **spec)], currency=setting)
    status, reason, message = condition(pool, "PriceKnown")
    assert (pool.price, status, reason) == (None, False, "OtherCurrency")
    assert told in message
    assert f"costs are in {setting}" in message
    assert pool.price_problem == message


def test_a_price_in_the_currency_of_the_settings_counts() -> None:
    spec: dict[str, Any] = {
        "nodeSelector": {MACHINE: "p5.48xlarge"},
        "price": {"perNodeHour": "13", "currency": "EUR"},
    }
    nodes = [node("a", {MACHINE: "p5.48xlarge"}, gpus=8)]
    pool = only_pool(nodes, [declared("mine", **spec)], currency="EUR")
    assert pool.price == Price(13.0, "EUR", "spec.price")
    assert pool.price_problem is None


A100 = 3.4309


@pytest.mark.parametrize(
    ("profile", "slices"),
    [("1g.10gb", 56), ("1g.20gb", 32), ("2g.20gb", 24), ("3g.40gb", 16), ("4g.40gb", 8)],
)
def test_slices_of_eight_devices_cost_what_these_do(profile: str, slices: int) -> None:
    """Also where they leave some of a device over: nobody else can have it."""
    raw = node("a", {"nvidia.com/gpu.product": f"NVIDIA-A100-SXM4-80GB-MIG-{profile}"}, gpus=slices)
    assert price(raw).per_node_hour == pytest.approx(8 * A100)


def test_pools_of_one_cut_device_share_its_price_by_what_they_take_the_most_of() -> None:
    slices = {"nvidia.com/mig-4g.40gb": "8", "nvidia.com/mig-3g.40gb": "8"}
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.strategy": "mixed"}
    prices = [each.price for each in all_pools([node("a", labels, resources=slices)])]
    told = sorted(each.per_node_hour for each in prices if each)
    assert sum(told) == pytest.approx(8 * A100)
    assert told[1] / told[0] == pytest.approx((4 / 7) / (1 / 2))


def test_a_slice_that_only_a_person_names_is_priced_as_one() -> None:
    labels = {"example.com/cut": "yes"}
    spec: dict[str, Any] = {"nodeSelector": labels, "accelerator": "A100-SXM4-80GB-MIG-1g.10gb"}
    pool = only_pool([node("a", labels, gpus=56)], [declared("mine", **spec)])
    assert pool.price is not None
    assert pool.price.per_node_hour == pytest.approx(8 * A100)


def test_every_shipped_price_has_a_date() -> None:
    assert "2026-11-09" in price(node("a", H100, gpus=8)).source


def test_an_accelerator_without_a_price_has_none() -> None:
    raw = node("a", {"nvidia.com/gpu.product": "NVIDIA-A30"}, gpus=4)
    assert only_pool([raw]).price is None


def test_what_a_person_pays_wins() -> None:
    spec: dict[str, Any] = {
        "nodeSelector": {MACHINE: "p5.48xlarge"},
        "price": {"perNodeHour": "31.5"},
    }
    nodes = [node("a", {MACHINE: "p5.48xlarge"}, gpus=8)]
    assert only_pool(nodes, [declared("mine", **spec)]).price == Price(31.5, "USD", "spec.price")


L4 = {"nvidia.com/gpu.product": "NVIDIA-L4"}
SPOT = {"karpenter.sh/capacity-type": "spot"}
ON_DEMAND = {"karpenter.sh/capacity-type": "on-demand"}
RESERVED = {"karpenter.sh/capacity-type": "reserved"}


def l4(name: str, machine: str, gpus: int, **labels: str) -> dict[str, Any]:
    return node(name, {MACHINE: machine, **L4, **labels}, gpus=gpus)


def dollars_per_accelerator(*nodes: dict[str, Any]) -> float:
    pool = only_pool(nodes, [declared("mine", nodeSelector=L4)])
    assert pool.price is not None
    return pool.price.per_node_hour / pool.accelerators_per_node


def test_nodes_of_one_pool_are_priced_as_the_dearest_and_told_to_be_split() -> None:
    small = [l4(name, "g6.xlarge", 1) for name in "abc"]
    large = [l4("d", "g6.12xlarge", 4)]
    apart = [dollars_per_accelerator(*each) for each in (small, large)]
    assert apart[0] < apart[1], "the tables tell two prices"
    for nodes in ([*small, *large], [small[0], *(l4(name, "g6.12xlarge", 4) for name in "def")]):
        assert dollars_per_accelerator(*nodes) == pytest.approx(apart[1])
        pool = only_pool(nodes, [declared("mine", nodeSelector=L4)])
        status, reason, message = condition(pool, "NodesAlike")
        assert (status, reason) == (False, "PricesDiffer")
        assert f"${apart[1]:.2f} (machine type g6.12xlarge" in message
        assert f"${apart[0]:.2f} (machine type g6.xlarge" in message
        assert message.endswith("all are taken at the dearest; select them apart, in a pool each")
        assert pool.price_problem is None


def test_a_price_that_a_person_tells_is_that_of_all_nodes() -> None:
    nodes = [l4("a", "g6.xlarge", 1), l4("b", "g6.12xlarge", 4)]
    given = declared("mine", nodeSelector=L4, price={"perNodeHour": "2"})
    pool = only_pool(nodes, [given])
    assert pool.price == Price(2.0, "USD", "spec.price")
    assert "NodesAlike" not in {each.type for each in pool.conditions}


def test_nodes_that_nobody_declared_are_alike() -> None:
    nodes = [l4("a", "g6.xlarge", 1), l4("b", "g6.12xlarge", 4), l4("c", "g6.xlarge", 1, **SPOT)]
    pools = all_pools(nodes)
    assert len(pools) == 3
    assert "NodesAlike" not in {each.type for pool in pools for each in pool.conditions}


@pytest.mark.parametrize(
    ("terms", "taken_as"),
    [
        ((ON_DEMAND, ON_DEMAND, SPOT), "Spot"),
        ((RESERVED, RESERVED, ON_DEMAND), "OnDemand"),
        ((RESERVED, SPOT, ON_DEMAND), "Spot"),
    ],
)
def test_a_pool_is_no_surer_than_the_least_sure_of_its_nodes(
    terms: tuple[dict[str, str], ...], taken_as: str
) -> None:
    nodes = [l4(name, "g6.xlarge", 1, **labels) for name, labels in zip("abc", terms, strict=True)]
    pool = only_pool(nodes, [declared("mine", nodeSelector=L4)])
    assert pool.capacity_type == taken_as
    status, reason, message = condition(pool, "NodesAlike")
    assert (status, reason) == (False, "TermsDiffer")
    assert f"all are taken as {taken_as}; select them apart" in message
    told = only_pool(nodes, [declared("mine", nodeSelector=L4, capacityType="Reserved")])
    assert told.capacity_type == "Reserved"
    assert "NodesAlike" not in {each.type for each in told.conditions}


def test_one_spot_node_more_makes_no_pod_anew() -> None:
    """Pods of a pool tolerate what they did before."""
    nodes = [l4(name, "g6.xlarge", 1, **ON_DEMAND) for name in "ab"]
    given = [declared("mine", nodeSelector=L4)]
    mixed = only_pool([*nodes, l4("c", "g6.xlarge", 1, **SPOT)], given)
    assert mixed.tolerations == only_pool(nodes, given).tolerations
