"""What more must never make worse: nodes, and lower prices."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.cluster_given import gpu_nodes, job, plan_of, service

FEW = settings(max_examples=25, deadline=None)
PRODUCTS = {"h100": "NVIDIA-H100-80GB-HBM3", "l40s": "NVIDIA-L40S", "a100": "NVIDIA-A100-SXM4-80GB"}
BATCHES = st.sampled_from([36, 60, 96, 240, 256, 384, 480, 720, 1000, 1024])
ALIKE = 1.005
"""Layouts within three digits of each other count as equally fast."""


def run(batch, tokens, goal="Time"):
    training = {"globalBatchSize": batch, "sequenceLength": tokens, "tokens": "1G"}
    return job(training=training, accelerators={"min": 8, "max": 64}, objective={"goal": goal})


@FEW
@given(st.sampled_from(sorted(PRODUCTS)), BATCHES, st.sampled_from([2048, 4096, 8192]))
def test_a_larger_pool_never_makes_a_run_slower(name, batch, tokens):
    """With 7 nodes a batch of 256 took 32 accelerators, and 26 % longer than with 6 nodes."""
    seconds = [
        plan_of(gpu_nodes(name, nodes, PRODUCTS[name]), run(batch, tokens)).chosen.total_seconds
        for nodes in range(1, 9)
    ]
    for fewer, more in itertools.pairwise(seconds):
        assert more <= fewer * ALIKE, seconds


def priced(name, per_hour):
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": PRODUCTS[name]},
            "price": {"perNodeHour": str(per_hour)},
        },
    }


@FEW
@given(
    st.lists(st.integers(5, 90), min_size=3, max_size=3),
    st.sampled_from(sorted(PRODUCTS)),
    st.sampled_from(["1", "5", "20"]),
)
def test_half_the_price_of_a_pool_never_raises_the_bill(prices, cheaper, rate):
    nodes = [node for name in PRODUCTS for node in gpu_nodes(name, 3, PRODUCTS[name])]
    before = dict(zip(PRODUCTS, prices, strict=True))
    after = {**before, cheaper: before[cheaper] / 2}
    for workload in (service(requests_per_second=rate), run(256, 4096, "Cost")):
        bills = [
            plan_of(nodes, workload, pools=[priced(*each) for each in all_prices.items()]).chosen
            for all_prices in (before, after)
        ]
        costs = [each.cost_per_hour if each.replicas else each.total_cost for each in bills]
        assert costs[1] <= costs[0] * (1 + 0.02), (bills[0].pool, bills[1].pool, costs)
