"""Why a pool is out of the question, in a word for programs and a sentence for people."""

from dataclasses import replace
from functools import partial

import pytest

from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.training.answers import gang_machine
from poolwise.plan.decision import Kind
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import ledger
from poolwise.plan.memo import Memo
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.status.story import candidate_story
from poolwise.plan.wording import duration
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    NOW,
    candidate,
    cpu_nodes,
    decided,
    gpu_nodes,
    h100,
    job,
    l40s,
    plan_of,
    service,
)
from tests.plan.machines import CALIBRATION, TABLES, machine

H100_LABEL = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}

TIGHT = [{"metric": "TTFT", "percentile": 99, "target": "1ms"}]


def declared(**spec):
    return {
        "metadata": {"name": "mine", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeSelector": H100_LABEL, **spec},
    }


def cordoned(count):
    return [{**node, "spec": {**node["spec"], "unschedulable": True}} for node in h100(count)]


def mig_nodes():
    nodes = gpu_nodes("mig", 1, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", per_node=7)
    nodes[0]["metadata"]["labels"]["nvidia.com/mig.strategy"] = "single"
    return nodes


def shared_nodes():
    nodes = gpu_nodes("shared", 1, "NVIDIA-A10G-SHARED", per_node=4)
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    nodes[0]["metadata"]["labels"].update(labels)
    return nodes


def inferentia(count):
    nodes = gpu_nodes("inf2", count, "", per_node=12)
    for each in nodes:
        each["spec"]["taints"] = []
        each["metadata"]["labels"] = {"node.kubernetes.io/instance-type": "inf2.48xlarge"}
        each["status"]["capacity"]["aws.amazon.com/neuron"] = "12"
        each["status"]["allocatable"]["aws.amazon.com/neuron"] = "12"
        del each["status"]["capacity"]["nvidia.com/gpu"]
        del each["status"]["allocatable"]["nvidia.com/gpu"]
    return nodes


@pytest.mark.parametrize(
    ("nodes", "spec", "pools", "code", "says"),
    [
        pytest.param(
            cpu_nodes("cpu", 1), {}, [], Verdict.CPU_POOL, "training runs on accelerators", id="CPU"
        ),
        pytest.param(mig_nodes(), {}, [], Verdict.MIG_SLICES, "for services only", id="MIG"),
        pytest.param(
            shared_nodes(),
            {},
            [],
            Verdict.SHARED_DEVICES,
            "shared devices are not used",
            id="shared",
        ),
        pytest.param(
            gpu_nodes("x", 1, "NVIDIA-Z9000"),
            {},
            [],
            Verdict.UNKNOWN_HARDWARE,
            "NVIDIA-Z9000",
            id="B79 unknown hardware",
        ),
        pytest.param(
            h100(1),
            {"run": {"image": "train", "resources": {"requests": {"rdma/hca": "1"}}}},
            [],
            Verdict.RESOURCE_MISSING,
            "has no rdma/hca on its 1 node, each pod asks for 1 rdma/hca",
            id="no such resource",
        ),
        pytest.param(
            h100(1),
            {},
            [declared(allowedNamespaces=["prod"])],
            Verdict.NAMESPACE_NOT_ALLOWED,
            "does not admit namespace research",
            id="namespace",
        ),
        pytest.param(
            h100(1),
            {"placement": {"pools": ["other"]}},
            [declared()],
            Verdict.NOT_SELECTED,
            "placement.pools (other)",
            id="pools",
        ),
        pytest.param(
            h100(1),
            {"placement": {"excludePools": ["mine"]}},
            [declared()],
            Verdict.EXCLUDED,
            "placement.excludePools",
            id="excludePools",
        ),
        pytest.param(
            h100(1),
            {"placement": {"capacityTypes": ["Reserved"]}},
            [declared(capacityType="Spot")],
            Verdict.CAPACITY_TYPE_EXCLUDED,
            "is Spot, placement wants Reserved",
            id="capacity type",
        ),
        pytest.param(
            h100(1),
            {"accelerators": {"count": 8, "products": ["l40s", "H200-SXM-141GB"]}},
            [],
            Verdict.PRODUCT_EXCLUDED,
            "products wants H200-SXM-141GB, L40S",
            id="products",
        ),
        pytest.param(
            [],
            {},
            [declared(accelerator="H100-SXM5-80GB")],
            Verdict.NO_USABLE_NODE,
            "has no node now",
            id="empty pool",
        ),
        pytest.param(
            gpu_nodes("a100", 1, "NVIDIA-A100-SXM4-80GB"),
            {
                "training": {
                    "globalBatchSize": 8,
                    "sequenceLength": 128,
                    "steps": 9,
                    "precision": "fp8",
                }
            },
            [],
            Verdict.FORMAT_UNSUPPORTED,
            "does not compute in fp8",
            id="B84 no fp8",
        ),
        pytest.param(
            inferentia(1),
            {},
            [],
            Verdict.INFERENCE_ONLY,
            "Inferentia2 is built for inference",
            id="inference only",
        ),
        pytest.param(
            gpu_nodes("h20", 1, "NVIDIA-H20"),
            {"objective": {"maxCost": "1M"}},
            [],
            Verdict.PRICE_UNKNOWN,
            "no price of it is known, and maxCost is $1,000,000: set spec.price",
            id="maxCost at an unknown price",
        ),
        pytest.param(
            h100(2),
            {
                "training": {"globalBatchSize": 100, "sequenceLength": 128, "steps": 9},
                "accelerators": {"count": 16},
                "model": {
                    "custom": {
                        "parameters": "1M",
                        "forwardFlopsPerSample": "1M",
                        "activationBytesPerSample": "1M",
                    }
                },
            },
            [],
            Verdict.SHAPE_DOES_NOT_FIT,
            "100 samples does not divide over 16",
            id="batch",
        ),
    ],
)
def test_training(nodes, spec, pools, code, says):
    (told,) = plan_of(nodes, job(**spec), pools=pools).candidates
    assert not told.feasible
    assert told.reason_code == code
    assert says in told.reason


@pytest.mark.parametrize(
    ("nodes", "spec", "code", "says"),
    [
        pytest.param(
            mig_nodes(),
            {"accelerators": {"perReplica": 2}},
            Verdict.MIG_SLICES,
            "wants 2",
            id="MIG",
        ),
        pytest.param(
            cpu_nodes("cpu", 1),
            {"accelerators": {"perReplica": 1}},
            Verdict.CPU_POOL,
            "has no accelerators, a replica wants 1",
            id="an accelerator that is asked for",
        ),
        pytest.param(
            cpu_nodes("cpu", 1),
            {"engine": {"type": "tgi"}},
            Verdict.NO_ENGINE,
            "an image of tgi for CPUs",
            id="engine without a build",
        ),
        pytest.param(
            l40s(1), {"engine": {"type": "custom"}}, Verdict.NO_ENGINE, "run.image", id="no image"
        ),
        pytest.param(
            l40s(1),
            {"objective": {"maxCostPerHour": "1"}},
            Verdict.TOO_EXPENSIVE,
            "maxCostPerHour is $1.00",
            id="maxCostPerHour",
        ),
        pytest.param(
            gpu_nodes("h20", 1, "NVIDIA-H20"),
            {"objective": {"maxCostPerHour": "100"}},
            Verdict.PRICE_UNKNOWN,
            "no price of it is known, and maxCostPerHour is $100: set spec.price",
            id="maxCostPerHour at an unknown price",
        ),
        pytest.param(
            cpu_nodes("cpu", 1, cores=0),
            {},
            Verdict.NO_USABLE_NODE,
            "has no usable node: cpu-0 allocates no cpu",
            id="a node without cores",
        ),
        pytest.param(
            cpu_nodes("cpu", 1),
            {"slo": [{"metric": "ITL", "percentile": "99.999999", "target": "300ms"}]},
            Verdict.TARGET_UNREACHABLE,
            " ms, target 300 ms, and it is missed as soon as a second request comes",
            id="a tail that only a lone request keeps",
        ),
        pytest.param(
            l40s(1),
            {"slo": [{"metric": "ITL", "percentile": 99, "target": "1ms"}]},
            Verdict.TARGET_UNREACHABLE,
            "ITL p99 at one request is",
            id="B74 below the physics",
        ),
        pytest.param(
            l40s(1),
            {"model": {"preset": "llama-3.1-405b"}},
            Verdict.MEMORY_DOES_NOT_FIT,
            "GiB per accelerator at the smallest shape, L40S has 40.0 usable",
            id="B83 too large",
        ),
        pytest.param(
            l40s(1),
            {"parallelism": {"tensor": 16}},
            Verdict.SHAPE_DOES_NOT_FIT,
            "tensor 16",
            id="more than a node",
        ),
    ],
)
def test_services(nodes, spec, code, says):
    (told,) = plan_of(nodes, service(**spec)).candidates
    assert not told.feasible
    assert told.reason_code == code
    assert says in told.reason


def test_a_target_that_leaves_no_room_for_load_is_told_beside_the_replicas():
    """22 ms between tokens without any load: the many replicas follow from a target of 25 ms."""
    spec = {
        "slo": [{"metric": "ITL", "percentile": 99, "target": "25ms"}],
        "requests_per_second": "40",
        "accelerators": {"perReplica": 1},
    }
    (told,) = plan_of(l40s(4), service(**spec)).candidates
    assert told.reason_code == Verdict.TOO_MANY_REPLICAS
    assert "scaling.maxReplicas is 10; ITL p99 at one request is" in told.reason
    assert told.reason.endswith("target 25 ms, which leaves little for load")
    loose = {**spec, "slo": [{"metric": "ITL", "percentile": 99, "target": "80ms"}]}
    (told,) = plan_of(l40s(4), service(**loose | {"requests_per_second": "400"})).candidates
    assert told.reason.endswith("scaling.maxReplicas is 10")


def test_one_accelerator_is_not_several():
    (told,) = plan_of(gpu_nodes("t4", 1, "Tesla-T4", 1), job(count=1_024)).candidates
    assert told.reason.startswith("has 1 accelerator, needs 1,024")


def test_slices_serve_alone():
    small = {"model": {"preset": "llama-3.2-1b", "maxModelLength": 4096}}
    plan = plan_of(mig_nodes(), service(requests_per_second="0.5", **small))
    assert plan.placed
    assert plan.chosen.count == 1


def test_cpus_may_be_named_as_products():
    spec = {
        "model": {"preset": "bert-base"},
        "traffic": {"requestsPerSecond": "1", "inputTokens": {"p50": 50}},
        "slo": [{"metric": "E2E", "percentile": 95, "target": "5s"}],
        "run": {"image": "embedder"},
    }
    nodes = [*cpu_nodes("cpu", 1), *l40s(1)]
    for product in ("cpu", "xeon-8488c"):
        plan = plan_of(nodes, service(accelerators={"products": [product]}, **spec))
        assert plan.chosen.accelerator == "CPU"


def test_memo_forgets_the_least_recently_used():
    memo, asked = Memo(limit=2), []

    def ask(subject):
        asked.append(subject)
        return subject

    for each in "abacab":
        assert memo.page(each).get("question", partial(ask, each)) == each
    assert asked == ["a", "b", "c", "b"]
    assert len(memo) == 2


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_a_precision_that_the_device_has_is_not_refused(precision):
    training = {"globalBatchSize": 8, "sequenceLength": 128, "steps": 9, "precision": precision}
    spec = {"model": {"preset": "bert-base"}, "training": training}
    (told,) = plan_of(gpu_nodes("t4", 1, "Tesla-T4"), job(**spec)).candidates
    assert told.feasible


@pytest.mark.parametrize("workload", [job, service], ids=["job", "service"])
def test_a_price_in_another_currency_is_in_the_reason_where_cost_decides(workload):
    euros = declared(price={"perNodeHour": "1", "currency": "EUR"})
    spec = {"objective": {"goal": "Cost"}}
    told = plan_of([*h100(1), *l40s(1)], workload(**spec), pools=[euros]).candidates
    (mine,) = (each for each in told if each.pool == "mine")
    assert mine.feasible
    assert "€1.00 per node and hour (spec.price) is not compared" in mine.reason


def test_bf16_at_the_rate_of_fp32_is_pointed_out():
    training = {"globalBatchSize": 8, "sequenceLength": 128, "steps": 9}
    spec = {"model": {"preset": "bert-base"}, "training": training}
    plan = plan_of(gpu_nodes("t4", 1, "Tesla-T4"), job(**spec))
    assert plan.placed
    assert "T4 computes bf16 at the rate of fp32" in plan.reason
    assert "training.precision fp16 would be faster" in plan.reason


@pytest.mark.parametrize(
    ("label", "spec", "is_told"),
    [
        pytest.param("NVIDIA-B300", {}, True, id="feasible"),
        pytest.param(
            "NVIDIA-B300", {"accelerators": {"perReplica": 1}, "slo": TIGHT}, True, id="not"
        ),
        pytest.param("NVIDIA-B200", {}, False, id="fast-in-int8"),
    ],
)
def test_quantised_weights_that_a_device_multiplies_slowly_are_pointed_out(label, spec, is_told):
    """Blackwell Ultra has a fifteenth of its 16-bit rate left in int8, and fp8 at twice of it."""
    model = {"preset": "llama-3.1-8b", "maxModelLength": 8192, "quantization": "int8"}
    (told,) = plan_of(gpu_nodes("b", 1, label), service(model=model, **spec)).candidates
    remark = "computes int8 at 6.8 % of the rate of bf16, which model.quantization None goes by"
    assert (remark in told.reason) is is_told
    assert told.feasible is ("slo" not in spec)


@pytest.mark.parametrize("workload", [job, service], ids=["job", "service"])
def test_devices_that_talk_over_pcie_are_predicted_with_low_confidence(workload):
    spec = {"model": {"preset": "llama-3.1-70b"}} if workload is service else {}
    told = plan_of([*h100(1), *l40s(1)], workload(**spec)).candidates
    doubts = {each.accelerator: each.doubt for each in told}
    assert doubts["H100-SXM5-80GB"] is None
    assert "devices talk over PCIe" in doubts["L40S"]


@pytest.mark.parametrize(("count", "more"), [(1, ""), (3, ", and 2 more cannot be used")])
def test_a_pool_that_is_cordoned_names_its_first_node(count, more):
    told = candidate(plan_of(cordoned(count), job(count=8)), "H100-SXM5-80GB")
    assert told.reason_code == Verdict.NO_USABLE_NODE
    assert told.reason == f"has no usable node: h100-0 is cordoned{more}"


def test_pods_of_a_part_of_a_node_have_that_part_of_its_host():
    whole = machine("H100-SXM5-80GB")
    assert gang_machine(whole, 8, 16) is whole
    assert gang_machine(whole, 4, 4) is whole, "a lone pod has what its node has"
    part = gang_machine(whole, 6, 12)
    assert part.host.cores == whole.host.cores * 6 / 8
    link = part.interconnect
    assert (link.accelerators_per_node, link.domain_accelerators) == (6, 6)
    rack = replace(whole, interconnect=replace(whole.interconnect, domain_accelerators=72))
    assert gang_machine(rack, 6, 12).interconnect.domain_accelerators == 72


def test_a_replica_that_bears_too_little_of_a_shared_load_tells_how_far_it_is_from_it():
    pools = decided(h100(1)).pools
    now = Situation(ledger(pools, {}), CALIBRATION, Memo(), Settings(), NOW, Corrections())
    asked = workload(service(), Kind.INFERENCE_SERVICE, TABLES, Settings(), {}).request
    assert isinstance(asked, ServingRequest)
    (found,) = candidates(replace(asked, least_requests_per_second=1000.0), pools, now)
    assert found.reason_code == Verdict.TARGET_UNREACHABLE
    bears, told, _ = found.reason.removeprefix("a replica bears ").partition(" requests/s, ")
    assert told and "each gets 1000 where several pools share the load" in found.reason
    assert float(bears) * found.shortfall == pytest.approx(1000.0, rel=0.01)


@pytest.mark.parametrize(("limit", "is_placed"), [("0.3", True), ("0.29", False)])
def test_a_limit_that_just_pays_for_all_replicas_does(limit, is_placed):
    """Three nodes at $0.10 are $0.30, and in binary fractions a little more."""
    pool = {
        "metadata": {"name": "cheap", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            "price": {"perNodeHour": "0.1"},
        },
    }
    three = {"minReplicas": 3, "maxReplicas": 5}
    wanted = service(scaling=three, objective={"maxCostPerHour": limit})
    plan = plan_of(l40s(4, per_node=1), wanted, pools=[pool])
    assert plan.placed == is_placed, plan.reason


def test_targets_of_a_service_of_which_only_the_rate_counts_change_nothing_but_what_is_told():
    """Its replica is that of a service without targets; times are told at their percentile."""
    spec = {"trafficClass": "Throughput", "requests_per_second": "20"}
    (with_targets,) = plan_of(l40s(4), service(**spec, slo=TIGHT)).candidates
    (without,) = plan_of(l40s(4), service(**spec, slo=[])).candidates
    assert with_targets.feasible
    assert (with_targets.layout, with_targets.replicas) == (without.layout, without.replicas)
    told, usual = with_targets.prediction, without.prediction
    assert told.capacity_requests_per_second == usual.capacity_requests_per_second
    assert told.limiting == usual.limiting != "TTFT p99"
    assert told.ttft_seconds.mid > usual.ttft_seconds.mid
    assert told.itl_seconds == usual.itl_seconds


def test_targets_of_a_service_whose_tail_counts_bound_it():
    (told,) = plan_of(l40s(4), service(slo=TIGHT, trafficClass="LatencyCritical")).candidates
    assert told.reason_code == Verdict.TARGET_UNREACHABLE


def test_a_target_out_of_reach_is_told_with_the_latencies_of_a_lone_request():
    (told,) = plan_of(l40s(1), service(slo=TIGHT)).candidates
    assert not told.feasible
    assert told.prediction.requests_per_second == 0.0
    assert f"TTFT p99 at one request is {duration(told.prediction.ttft_seconds.mid)}" in told.reason
    story = candidate_story(told)
    assert story["predicted"]["ttftSeconds"] > 1e-3
    assert story["shape"]["tensor"] == story["count"]
    assert not {"replicas", "costPerHour"} & set(story)


@pytest.mark.parametrize(
    "document",
    [service(model={"preset": "llama-3.1-405b"}), job(model={"preset": "llama-3.1-405b"})],
    ids=["service", "job"],
)
def test_memory_that_does_not_fit_is_told_with_the_shape_that_needs_it(document):
    (told,) = plan_of(l40s(2), document).candidates
    assert told.reason_code == Verdict.MEMORY_DOES_NOT_FIT
    story = candidate_story(told)
    assert story["count"] == told.layout.count > 0
    assert story["shape"]["tensor"] > 1
    memory = story["memory"]
    assert story["predicted"]["memoryBytesPerAccelerator"] == memory["neededBytes"]
    assert memory["mostBytes"] > memory["usableBytes"]
