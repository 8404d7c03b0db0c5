"""The latency of a lone request, below which no number of replicas goes."""

import pytest

from poolwise.plan.wording import duration
from tests.plan.cluster_given import h100, plan_of, service


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_the_floor_that_is_told_is_one(share):
    """Prompts longer than a chunk: what a smaller one takes is no floor."""

    def of(target_seconds):
        slo = [{"metric": "TTFT", "percentile": 99, "target": f"{1e6 * target_seconds:.0f}us"}]
        traffic = {"inputTokens": {"p50": 2000, "p95": 6000}, "requestsPerSecond": "10m"}
        (told,) = plan_of(h100(1), service(slo=slo, traffic=traffic)).candidates
        return told

    floor_seconds = of(1e-6).prediction.ttft_seconds.mid
    told = of(share * floor_seconds)
    assert told.feasible == (share > 1.0)
    assert told.feasible or f"at one request is {duration(floor_seconds)}" in told.reason
