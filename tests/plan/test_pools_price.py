from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.pool import Price
from tests.plan.nodes_given import H100, declared, node, only_pool

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
    assert price(node("a", spot, gpus=1)).source.endswith("(Spot costs less)")


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
