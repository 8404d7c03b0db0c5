"""What goes where, and in which words: the rule of thumb has to come out of the numbers."""

import copy
import re
from typing import Any

import pytest

from e2e import profiles
from poolwise.model.hardware import Resource
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.status.story import story
from tests.plan.cluster_given import (
    candidate,
    cpu_nodes,
    foreign_pod,
    gpu_nodes,
    h100,
    job,
    l40s,
    outcomes,
    plan_of,
    running,
    service,
)

VISION = {
    "model": {
        "custom": {
            "parameters": "25M",
            "forwardFlopsPerSample": "4100M",
            "activationBytesPerSample": "90M",
        }
    },
    "training": {"globalBatchSize": 1024, "samples": "100M", "optimizer": "Sgd"},
    "data": {"bytesPerSample": "115k", "cpuTimePerSample": "40ms"},
}
LLAMA_70B: dict[str, Any] = {
    "model": {"preset": "llama-3.1-70b"},
    "training": {"globalBatchSize": 512, "sequenceLength": 8192, "tokens": "2G"},
}
SUMMARIES = {
    "model": {"preset": "llama-3.1-8b", "maxModelLength": 32768},
    "traffic": {
        "requestsPerSecond": "2",
        "inputTokens": {"p50": 12000, "p95": 20000},
        "outputTokens": {"p50": 150, "p95": 300},
    },
    "slo": [{"metric": "TTFT", "percentile": 95, "target": "8s"}],
}
EMBEDDING = {
    "model": {"preset": "bert-base"},
    "traffic": {"requestsPerSecond": "5", "inputTokens": {"p50": 60, "p95": 200}},
    "slo": [{"metric": "E2E", "percentile": 95, "target": "1s"}],
    "engine": {"type": "custom"},
    "run": {"image": "embedder"},
}


def priciest(plan):
    """The candidate whose hour costs most per accelerator."""
    priced = [each for each in plan.candidates if each.cost_per_hour and each.count]
    return max(priced, key=lambda each: each.cost_per_hour / each.count)


@pytest.mark.parametrize("goal", ["Time", "Cost"])
def test_large_training_goes_where_links_are_fast(goal):
    nodes = [*h100(8), *l40s(16)]
    plan = plan_of(nodes, job(count=64, objective={"goal": goal}, **LLAMA_70B))
    assert plan.chosen.accelerator == "H100-SXM5-80GB"
    assert candidate(plan, "L40S").feasible
    ledger = {term.name: term.seconds for term in candidate(plan, "L40S").prediction.ledger}
    step = candidate(plan, "L40S").prediction.step_seconds.mid
    assert ledger["Interconnect"] + ledger.get("PipelineBubble", 0.0) > 0.1 * step


def test_chat_goes_where_bandwidth_is_cheap():
    """L40S gives 0.48 TB/s for each dollar of an hour, A100 0.59, T4 0.64 without room for it."""
    nodes = [*h100(1), *l40s(1), *gpu_nodes("t4", 8, "Tesla-T4", per_node=1, cores=16)]
    plan = plan_of(nodes, service(requests_per_second="6"))
    assert plan.chosen.accelerator == "L40S"
    assert plan.chosen.bottleneck.resource is Resource.MEMORY_BANDWIDTH
    assert candidate(plan, "T4").reason_code == Verdict.MEMORY_DOES_NOT_FIT


@pytest.mark.parametrize("goal", ["Time", "Cost", "Energy"])
@pytest.mark.parametrize("profile", ["demo", "eks-p5-g6", "gke-a3-g2", "bare-h200-l40s"])
def test_vision_that_waits_for_its_input_gets_no_dear_chip(profile, goal):
    plan = plan_of(profiles.render(profile), job(count=4, objective={"goal": goal}, **VISION))
    dearest = priciest(plan)
    assert dearest.bottleneck.resource is Resource.INPUT
    assert plan.chosen.accelerator != dearest.accelerator


def test_vision_that_computes_gets_the_fast_chip():
    fed = {**VISION, "data": {"bytesPerSample": "10k", "cpuTimePerSample": "100us"}}
    plan = plan_of([*h100(1), *l40s(1)], job(count=4, **fed))
    assert plan.chosen.bottleneck.resource is not Resource.INPUT
    assert plan.chosen.accelerator == "H100-SXM5-80GB"


@pytest.mark.parametrize("profile", ["demo", "eks-p5-g6", "bare-h200-l40s"])
def test_long_prompts_are_bound_by_compute(profile):
    plan = plan_of(profiles.render(profile), service(**SUMMARIES))
    assert plan.chosen.bottleneck.resource is Resource.COMPUTE


@pytest.mark.parametrize("profile", ["demo", "eks-p5-g6", "gke-a3-g2", "aks-nd", "cpu-only"])
def test_small_encoder_goes_to_cpu_where_that_is_cheapest(profile):
    plan = plan_of(profiles.render(profile), service(**EMBEDDING))
    layout = plan.chosen.layout
    assert plan.chosen.accelerator == "CPU"
    assert isinstance(layout, ServingLayout)
    assert layout.cpu_cores >= 1
    assert plan.chosen.count == 0
    others = [each.cost_per_hour for each in plan.candidates if each.feasible]
    assert plan.chosen.cost_per_hour == min(others)


def test_encoder_that_cpus_are_too_slow_for_goes_to_an_accelerator():
    tight = {**EMBEDDING, "slo": [{"metric": "E2E", "percentile": 95, "target": "45ms"}]}
    plan = plan_of([*l40s(1), *cpu_nodes("cpu", 3, "m6i.4xlarge", 16)], service(**tight))
    assert plan.chosen.accelerator == "L40S"
    assert candidate(plan, "CPU").reason_code == Verdict.TARGET_UNREACHABLE
    assert "E2E p95 at one request is" in candidate(plan, "CPU").reason


def test_every_pool_is_a_candidate():
    nodes = [*h100(1), *l40s(1), *cpu_nodes("cpu", 1)]
    plan = plan_of(nodes, job(count=8))
    assert {each.accelerator for each in plan.candidates} == {"H100-SXM5-80GB", "L40S", "CPU"}
    assert [each for each in plan.candidates if each.chosen] == [plan.chosen]


def test_memory_that_does_not_fit_is_told_with_its_number():
    plan = plan_of(l40s(2), job(count=16, **LLAMA_70B))
    told = candidate(plan, "L40S")
    assert told.reason_code == Verdict.MEMORY_DOES_NOT_FIT
    assert "GiB per accelerator at the smallest shape, L40S has 43.9 usable" in told.reason
    assert not plan.placed and plan.chosen is None
    assert plan.reason_code == "NoFeasiblePool"


def test_a_run_that_finds_no_memory_is_told_how_many_accelerators_would_hold_it():
    """The number is the first of those that would be tried at which it has a shape."""
    told = candidate(plan_of(l40s(2), job(count=8, **LLAMA_70B)), "L40S").reason
    found = re.search(r"; (\d+) together would hold it(, and the pool has 16)?$", told)
    assert found, told
    enough = int(found[1])
    assert bool(found[2]) == (enough > 16)
    nodes = l40s(enough // 8)
    assert candidate(plan_of(nodes, job(count=enough, **LLAMA_70B)), "L40S").feasible
    less = candidate(plan_of(nodes, job(count=enough // 2, **LLAMA_70B)), "L40S")
    assert less.reason_code == Verdict.MEMORY_DOES_NOT_FIT
    whole = {"tensor": 1, "pipeline": 1, "context": 1, "zeroStage": 0}
    given = {"training": {**LLAMA_70B["training"], "parallelism": whole}}
    hopeless = candidate(plan_of(l40s(1), job(count=4, **{**LLAMA_70B, **given})), "L40S")
    assert hopeless.reason_code == Verdict.MEMORY_DOES_NOT_FIT
    assert "would hold it" not in hopeless.reason


def test_pool_that_is_too_small_is_not_waited_for():
    told = candidate(plan_of(h100(2), job(count=64, **LLAMA_70B)), "H100-SXM5-80GB")
    assert not told.waits
    assert told.reason.startswith("has 16 accelerators, needs 64")


@pytest.mark.parametrize(("count", "shortfall"), [(18, None), (64, 4.0)])
def test_of_accelerators_and_memory_the_larger_lack_is_how_far_a_pool_is_from_it(count, shortfall):
    """On 16 L40S 70B lacks 1.2 times their memory or more, whatever their number."""
    told = candidate(plan_of(l40s(2), job(count=count, **LLAMA_70B)), "L40S")
    assert told.reason_code == Verdict.MEMORY_DOES_NOT_FIT
    found = re.search(r"needs ([\d.]+) GiB .* has ([\d.]+) usable", told.reason)
    assert found, told.reason
    assert told.shortfall == pytest.approx(shortfall or float(found[1]) / float(found[2]), rel=0.01)


def test_cordoned_nodes_are_waited_for():
    nodes = h100(2)
    nodes[0]["spec"]["unschedulable"] = True
    plan = plan_of(nodes, job(count=16))
    assert candidate(plan, "H100-SXM5-80GB").waits
    assert "8 of 8 are free, needs 16" in plan.reason


@pytest.mark.parametrize(
    ("objective", "code", "says"),
    [
        pytest.param({"maxCost": "1"}, Verdict.TOO_EXPENSIVE, "maxCost is $1.00", id="maxCost"),
        pytest.param(
            {"deadline": "2026-11-21T00:10:00Z"},
            Verdict.DEADLINE_MISSED,
            "longer than until the deadline (2026-11-21 00:10 UTC)",
            id="deadline",
        ),
        pytest.param(
            {"deadline": "2026-11-20T00:00:00Z"},
            Verdict.DEADLINE_MISSED,
            "the deadline (2026-11-20 00:00 UTC) has passed",
            id="past",
        ),
    ],
)
def test_limits_are_kept(objective, code, says):
    told = candidate(plan_of(h100(1), job(objective=objective)), "H100-SXM5-80GB")
    assert (told.feasible, told.reason_code) == (False, code)
    assert says in told.reason


def test_limits_choose_among_counts():
    """The run that may take 1 to 8 accelerators takes as many as its deadline needs."""
    growing = {"accelerators": {"min": 1, "max": 8}, "model": {"preset": "llama-3.2-1b"}}
    cheap = plan_of(h100(1), job(objective={"goal": "Cost"}, **growing)).chosen
    alone = cheap.total_seconds * cheap.count
    hurried = {"goal": "Cost", "deadline": f"2026-11-21T{int(alone / 4 / 3600):02d}:59:00Z"}
    assert plan_of(h100(1), job(objective=hurried, **growing)).placed


def test_run_grows_while_each_accelerator_yields_enough():
    """A step of 25 million parameters is soon all overhead; one of 8 billion is not."""
    growing = {"accelerators": {"min": 8, "max": 64}}
    small = plan_of(h100(8), job(**{**VISION, "data": {}}, **growing)).chosen
    large = plan_of(h100(8), job(**growing)).chosen
    assert small.count == 8 < large.count


@pytest.mark.parametrize("price", ["40", "0"])
def test_who_only_asks_is_told_the_count_that_would_be_placed(price):
    """Where a node costs nothing every count is the cheapest: the fewest were told, 16 placed."""
    free = {"nodeSelector": {"nvidia.com/gpu.count": "8"}, "price": {"perNodeHour": price}}
    pools = [{"metadata": {"name": "own", "uid": "own"}, "spec": free}]
    spec = {
        "training": {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "1G"},
        "accelerators": {"min": 8, "max": 64},
        "objective": {"goal": "Cost"},
    }
    placed, asked = (
        plan_of(h100(4), job(mode=mode, **spec), pools=pools).chosen for mode in ("Run", "Plan")
    )
    assert asked.count == placed.count == {"40": 8, "0": 16}[price]


def test_a_run_is_as_sure_as_its_steps_at_each_count():
    chosen = plan_of(h100(2), job(accelerators={"min": 4, "max": 16})).chosen
    assert len(chosen.offers) > 2
    step = chosen.prediction.step_seconds
    (mine,) = (each.seconds for each in chosen.offers if each.count == chosen.count)
    assert mine.mid == pytest.approx(chosen.total_seconds)
    assert (mine.low / mine.mid, mine.high / mine.mid) == pytest.approx(
        (step.low / step.mid, step.high / step.mid)
    )
    assert all(each.seconds.low < each.seconds.mid < each.seconds.high for each in chosen.offers)


def test_service_beyond_its_replicas_is_told():
    plan = plan_of(l40s(8), service(requests_per_second="500", scaling={"maxReplicas": 2}))
    told = candidate(plan, "L40S")
    assert told.reason_code == Verdict.TOO_MANY_REPLICAS
    assert "for 500 requests/s" in told.reason
    assert "scaling.maxReplicas is 2" in told.reason


def test_redundancy_and_minimum_come_on_top():
    few = plan_of(l40s(4), service(requests_per_second="6")).chosen.replicas
    more = plan_of(l40s(4), service(requests_per_second="6", scaling={"redundancy": 1})).chosen
    assert more.replicas == few + 1
    least = plan_of(l40s(4), service(requests_per_second="6", scaling={"minReplicas": 5})).chosen
    assert least.replicas == 5


def test_a_replica_is_predicted_at_its_part_of_the_load():
    chosen = plan_of(h100(1), service(requests_per_second="30")).chosen
    assert chosen.replicas == 2
    assert chosen.prediction.requests_per_second == 15.0


def test_unknown_traffic_gets_the_fewest_replicas():
    spec = {"traffic": {}, "scaling": {"minReplicas": 2}}
    assert plan_of(l40s(1), service(**spec)).chosen.replicas == 2


def test_cost_is_the_share_of_the_nodes():
    declared = {
        "metadata": {"name": "mine", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "price": {"perNodeHour": "40"},
        },
    }
    assert plan_of(h100(1), job(count=4), pools=[declared]).chosen.cost_per_hour == 20.0


@pytest.mark.parametrize("metric", ["ITL", "TPOT"])
def test_sequences_are_bounded_by_the_targets(metric):
    def sequences(target):
        slo = [{"metric": metric, "percentile": 99, "target": target}]
        return plan_of(h100(1), service(slo=slo)).chosen.layout.max_num_seqs

    assert sequences("12ms") < sequences("200ms")


def test_the_mean_gap_of_a_request_varies_less_than_single_gaps_and_is_told_where_asked_for():
    def predicted(*metrics):
        slo = [{"metric": each, "percentile": 99, "target": "100ms"} for each in metrics]
        return plan_of(h100(1), service(slo=slo)).chosen.prediction

    assert predicted("ITL").tpot_seconds is None
    both = predicted("ITL", "TPOT")
    assert 0.0 < both.tpot_seconds.mid < both.itl_seconds.mid


def test_each_class_of_traffic_has_an_engine_of_its_own():
    """Latency in small steps of few sequences, throughput in large ones of as many as fit."""
    slo = [{"metric": "ITL", "percentile": 99, "target": "20ms"}]
    latency = plan_of(h100(1), service(slo=slo)).chosen.layout
    rate = plan_of(h100(1), service(slo=[], trafficClass="Throughput")).chosen.layout
    assert latency.max_num_seqs < rate.max_num_seqs
    assert latency.max_batched_tokens < rate.max_batched_tokens


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        pytest.param("NVIDIA-H100-80GB-HBM3", "fp8", id="has a unit"),
        pytest.param("NVIDIA-A100-SXM4-80GB", "bf16", id="has none"),
    ],
)
def test_published_quantisation_only_where_the_chip_has_it(product, expected):
    spec = {"model": {"preset": "minimax-m2.5"}, "slo": [], "trafficClass": "Throughput"}
    told = plan_of(gpu_nodes("x", 1, product), service(**spec)).candidates[0]
    assert told.layout is not None, "it fits on a node in either format"
    assert told.layout.weight_format == expected


def test_quantisation_that_the_chip_lacks_is_refused():
    nodes = gpu_nodes("a100", 1, "NVIDIA-A100-SXM4-80GB")
    spec = {"model": {"preset": "llama-3.1-8b", "quantization": "fp8"}}
    told = candidate(plan_of(nodes, service(**spec)), "A100-SXM4-80GB")
    assert told.reason_code == Verdict.FORMAT_UNSUPPORTED
    assert "does not compute in fp8" in told.reason


def test_two_devices_taken_leave_room_for_six():
    plan = plan_of(h100(1), job(count=8), pods=[foreign_pod("h100-0", 2)])
    assert "6 of 8 are free, needs 8" in plan.reason


def racks(*sizes):
    """H100 nodes in racks of these sizes."""
    return [
        node
        for rack, size in enumerate(sizes)
        for node in gpu_nodes(
            f"h100-r{rack}",
            size,
            "NVIDIA-H100-80GB-HBM3",
            **{"network.topology.nvidia.com/leaf": f"leaf-{rack}"},
        )
    ]


@pytest.mark.parametrize(
    ("mode", "placed"),
    [("Auto", True), ("Preferred", True), ("Unconstrained", True), ("Required", False)],
)
def test_gang_that_no_rack_has_room_for(mode, placed):
    plan = plan_of(racks(1, 1), job(count=16, placement={"topology": {"mode": mode}}))
    assert plan.placed == placed
    if not placed:
        assert "no single domain of network.topology.nvidia.com/leaf" in plan.reason


@pytest.mark.parametrize(
    ("mode", "nodes"),
    [("Preferred", {"h100-r1-0", "h100-r1-1"}), ("Auto", {"h100-r0-0", "h100-r2-0"})],
    ids=["preferred", "auto-hardly-talks"],
)
def test_gang_goes_into_one_rack_unless_that_hardly_matters(mode, nodes):
    """Who would gain next to nothing leaves the rack of two to those who need it."""
    plan = plan_of(racks(1, 2, 1), job(count=16, placement={"topology": {"mode": mode}}))
    assert set(plan.claim.accelerators_by_node) == nodes
    assert not plan.domain


def test_required_rack_is_required_of_the_pods():
    spec = {"placement": {"topology": {"mode": "Required"}}}
    (child,) = running(racks(1, 2), job(count=16, **spec))
    selector = child["spec"]["template"]["spec"]["nodeSelector"]
    assert selector["network.topology.nvidia.com/leaf"] == "leaf-1"
    kept = plan_of(racks(1, 2), job(count=16, **spec), children=[child])
    assert kept.kept and kept.record.domain == {"network.topology.nvidia.com/leaf": "leaf-1"}


POD_TOO_LARGE = [
    ({"cpu": "300"}, "has 192 cores on its largest node, each pod asks for 300"),
    (
        {"memory": "2000Gi"},
        "has 1000.0 GiB of memory on its largest node, each pod asks for 2000.0",
    ),
]


@pytest.mark.parametrize(("asked", "told"), POD_TOO_LARGE, ids=["cores", "memory"])
@pytest.mark.parametrize("kind", [job, service])
def test_a_pod_larger_than_every_node_does_not_wait(kind, asked, told):
    run = {"image": "own", "resources": {"requests": asked}}
    plan = plan_of(h100(2), kind(run=run))
    assert not plan.placed
    assert plan.reason_code == "NoFeasiblePool"
    assert not any(each.waits for each in plan.candidates)
    assert told in plan.reason


@pytest.mark.parametrize("asked", [{"cpu": "192"}, {"memory": "1000Gi"}], ids=["cores", "memory"])
def test_a_pod_may_ask_for_all_that_a_node_has(asked):
    run = {"image": "own", "resources": {"requests": asked}}
    assert plan_of(h100(1), job(run=run)).placed


def test_a_cordoned_node_is_worth_waiting_for():
    nodes = h100(2)
    nodes[0]["spec"]["unschedulable"] = True
    plan = plan_of(nodes, job(count=16))
    assert plan.reason_code == Verdict.INSUFFICIENT_CAPACITY
    assert plan.chosen.waits


def test_the_nearest_miss_is_named_first():
    nodes = [*h100(1), *l40s(1), *cpu_nodes("cpu", 1)]
    plan = plan_of(nodes, job(count=8, objective={"goal": "Time", "maxCost": "1"}))
    costs = {each.pool: each.total_cost for each in plan.candidates if each.total_cost}
    nearest = min(costs, key=lambda pool: costs[pool])
    assert len(costs) == 2
    assert plan.reason.startswith(f"no pool can run it: {nearest}: would cost ")
    misses = [each.shortfall for each in plan.candidates if each.total_cost]
    assert misses == pytest.approx([each.total_cost for each in plan.candidates if each.total_cost])


def test_one_node_is_one_node():
    plan = plan_of(h100(2), job(), pods=[foreign_pod("h100-0", 4), foreign_pod("h100-1", 4)])
    assert "8 are free, but needs 1 node with 8 free accelerators, and has 0" in plan.reason


def test_a_given_size_beyond_a_node_names_the_nodes_size():
    spec = copy.deepcopy(LLAMA_70B)
    spec["training"]["parallelism"] = {"tensor": 16}
    plan = plan_of(h100(4), job(count=32, **spec))
    told = "the given tensor 16 cannot be laid over its accelerators: 32 of them, 8 in each pod"
    assert told in plan.reason


def test_pools_that_prediction_cannot_tell_apart_are_said_to_be_level():
    """H100 and H200 compute alike: the difference is none to pay for."""
    plan = plan_of([*h100(1), *gpu_nodes("h200", 1, "NVIDIA-H200")], job(count=8))
    assert not plan.is_significant
    assert "not significant" in plan.chosen.reason
    assert story(plan, None)["significant"] is False


def test_a_far_faster_pool_is_told_apart():
    plan = plan_of([*h100(1), *gpu_nodes("a10g", 2, "NVIDIA-A10G", per_node=4)], job(count=4))
    assert plan.is_significant
    assert story(plan, None)["significant"] is True
    assert plan.chosen.accelerator == "H100-SXM5-80GB"


def test_of_counts_that_cost_the_same_the_fastest_is_taken():
    """On the goal Cost 8 H100 were taken for $193, where 16 take half the time for $190."""
    training = {"globalBatchSize": 256, "sequenceLength": 8192, "tokens": "1G"}
    nodes = h100(2, **{"feature.node.kubernetes.io/rdma.available": "true"})
    asked = {"objective": {"goal": "Cost"}, "training": training}

    def planned(**accelerators):
        return plan_of(nodes, job(**asked, accelerators=accelerators)).chosen

    free, least = planned(min=2, max=32), planned(count=8)
    assert free.total_cost <= 1.02 * least.total_cost
    assert free.total_seconds < 0.6 * least.total_seconds


def test_who_waits_says_what_is_against_the_pools_that_are_free():
    first, second = job("first", count=8), job("second", count=8)
    found = outcomes([*h100(1), *l40s(1)], first, second)
    (waits,) = (each for each in found.values() if not each.placed)
    told = candidate(waits, "L40S")
    assert told.feasible and "times h100" in told.reason
