"""The JSON of ``poolwise plan -o json`` against the contract of api.md."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from poolwise.cli.table import energy, workloads
from poolwise.model.hardware import Resource
from poolwise.model.prediction import Bottleneck, Interval, Term
from poolwise.model.work import ServingLayout
from poolwise.plan.decision import Kind, Rejection
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.observed import Decisions
from poolwise.plan.pool import Condition
from poolwise.plan.rounding import rounded
from poolwise.plan.status.report import pool_document, report
from poolwise.plan.status.story import candidate_story
from poolwise.plan.wording import money
from tests.plan.children.given import (
    GIB,
    JOB,
    JOB_UID,
    SERVICE,
    cpu_pool,
    h100_pool,
    placed_job,
    placed_service,
    serving_prediction,
)

POOLS = (h100_pool(), cpu_pool())


def entry(outcome):
    (workload,) = rounded(report(Decisions(POOLS, {outcome.key: outcome})))["workloads"]
    return workload


def test_a_row_says_the_cost_that_its_reason_says():
    """2.7449 is 2.745 in four digits, which is 2.75 in three."""
    plan = placed_job()
    assert plan.chosen is not None
    plan = replace(plan, chosen=replace(plan.chosen, cost_per_hour=2.7449))
    assert entry(plan)["costPerHour"] == 2.745
    rows = report(Decisions(POOLS, {plan.key: plan}))["workloads"]
    console = Console(width=400)
    with console.capture() as shown:
        console.print(workloads(rows, with_reasons=False))
    assert f"{money(2.7449)}/h" in shown.get()


def chosen_candidate(**changes):
    chosen = placed_service(h100_pool(), ServingLayout()).chosen
    assert chosen is not None
    return replace(chosen, **changes)


def test_a_job_has_every_field_of_the_contract():
    job = entry(placed_job())
    assert {
        name: job[name]
        for name in ("kind", "namespace", "name", "placed", "pool", "accelerator", "count")
    } == {
        "kind": "TrainingJob",
        "namespace": "research",
        "name": "llama-70b",
        "placed": True,
        "pool": "h100-ib",
        "accelerator": "H100-SXM5-80GB",
        "count": 16,
    }
    assert job["shape"] == {
        "data": 2,
        "tensor": 8,
        "pipeline": 1,
        "expert": 1,
        "context": 1,
        "zeroStage": 1,
        "microBatchSize": 1,
        "recompute": "Selective",
    }
    assert job["bottleneck"] == "Compute"
    assert job["ledger"][0] == {"term": "Compute", "seconds": 92.04}
    assert job["predicted"] == {
        "stepSeconds": 125.0,
        "stepSecondsLow": 116.2,
        "stepSecondsHigh": 136.1,
        "tokensPerSecond": 67_120.0,
        "memoryBytesPerAccelerator": 65_500_000_000.0,
        "memoryBytesPerAcceleratorHigh": 69_260_000_000.0,
    }
    assert (job["costPerHour"], job["reason"]) == (110.0, "h100-ib finishes first")


def test_ledger_sums_to_the_step():
    job = entry(placed_job())
    total = sum(term["seconds"] for term in job["ledger"])
    assert total == pytest.approx(job["predicted"]["stepSeconds"], rel=1e-3)


def test_one_candidate_per_pool_and_the_chosen_is_marked():
    candidates = {each["pool"]: each for each in entry(placed_job())["candidates"]}
    assert candidates["h100-ib"]["chosen"] is True
    assert "chosen" not in candidates["mi300x"]
    assert candidates["odd"] == {
        "pool": "odd",
        "feasible": False,
        "reason": "no label names the accelerator",
        "reasonCode": "UnknownHardware",
    }


def test_a_service():
    placed = entry(placed_service(h100_pool(), ServingLayout(tensor=2, weight_format="fp8")))
    assert (placed["replicas"], placed["count"]) == (3, 2)
    assert placed["shape"]["quantization"] == "fp8"
    predicted = placed["predicted"]
    assert (predicted["ttftSeconds"], predicted["itlSeconds"]) == (0.31, 0.0173)
    assert predicted["requestsPerSecondPerReplica"] == 5.1
    assert predicted["e2eSeconds"] == 6.1
    likely, most = (predicted[f"memoryBytesPerAccelerator{end}"] for end in ("", "High"))
    assert most - likely == pytest.approx(1.5 * 2**30, rel=1e-3)


def test_the_ledger_of_a_service_sums_to_its_mean_request():
    placed = entry(placed_service(h100_pool(), ServingLayout()))
    total = sum(term["seconds"] for term in placed["ledger"])
    assert total == pytest.approx(placed["predicted"]["meanRequestSeconds"], rel=1e-3)


def test_what_has_no_meaning_without_tokens_is_absent():
    """As for ResNet: no first token, no limit on tokens."""
    none = Interval(0.0, 0.0, 0.0)
    one = replace(serving_prediction(), ttft_seconds=none, itl_seconds=none)
    told = candidate_story(chosen_candidate(prediction=one))
    assert "e2eSeconds" in told["predicted"]
    assert not {name for name in told["predicted"] if name.startswith(("ttft", "itl"))}
    assert not {"maxModelLength", "maxBatchedTokens"} & set(told["shape"])


@pytest.mark.parametrize("tokens", [None, 1500.0], ids=["vision", "encoder"])
def test_a_service_tells_samples_where_tokens_have_no_meaning(tokens):
    one = replace(serving_prediction(), requests_per_second=4.0, tokens_per_second=tokens)
    told = candidate_story(chosen_candidate(prediction=one))["predicted"]
    expected = {"samplesPerSecond": 4.0} if tokens is None else {"tokensPerSecond": tokens}
    rates = ("samplesPerSecond", "tokensPerSecond")
    assert {name: told[name] for name in rates if name in told} == expected


def test_a_service_without_a_planned_rate_tells_no_figure_of_one():
    """It is predicted at next to no load, for its latencies: rates of 1e-10 are none."""
    one = replace(
        serving_prediction(), requests_per_second=0.0, tokens_per_second=7.7e-8, concurrency=1.4e-10
    )
    told = candidate_story(chosen_candidate(prediction=one))["predicted"]
    of_a_rate = ("plannedRequestsPerSecondPerReplica", "concurrency", "tokensPerSecond")
    assert not {*of_a_rate, "samplesPerSecond"} & set(told)
    assert told["requestsPerSecondPerReplica"] == 5.1


def test_noise_is_not_told():
    faint = Bottleneck(Resource.COMPUTE, {Resource.COMPUTE: 0.07, Resource.HOST: -1.5e-9})
    ledger = (Term("Compute", 1.0), Term("KvCapacity", 3.4e-44), Term("Host", -0.0))
    prediction = replace(serving_prediction(), ledger=ledger)
    told = candidate_story(chosen_candidate(prediction=prediction, bottleneck=faint))
    assert str(told["gains"]) == "{'Compute': 0.07, 'Host': 0.0}"
    assert told["ledger"] == [{"term": "Compute", "seconds": 1.0}]


def test_a_cpu_replica_has_its_size_in_the_shape():
    layout = ServingLayout(cpu_cores=7.5, cpu_memory_bytes=24 * GIB)
    placed = entry(placed_service(cpu_pool(), layout))
    assert placed["accelerator"] == "CPU"
    assert (placed["shape"]["cpuCores"], placed["shape"]["memoryBytes"]) == (7.5, 24 * GIB)


def test_a_rejection():
    assert entry(Rejection(SERVICE, "u", 1, "InvalidSpec", "spec.model.preset: unknown")) == {
        "kind": Kind.INFERENCE_SERVICE.value,
        "namespace": "chat",
        "name": "assistant",
        "placed": False,
        "reason": "spec.model.preset: unknown",
        "reasonCode": "InvalidSpec",
        "candidates": [],
    }


def test_pools():
    h100, cpu = report(Decisions(POOLS, {}, {"h100-ib": 64, "cpu": 0}))["pools"]
    assert (h100["nodes"], h100["acceleratorsPerNode"], h100["free"]) == (8, 8, 64)
    assert (h100["role"], h100["pricePerNodeHour"]) == ("Interconnect", 55.0)
    assert (cpu["accelerator"], cpu["cpu"]) == ("CPU", "Xeon-8481C")
    assert "free" not in cpu


def test_a_pools_conditions():
    known = Condition("HardwareKnown", None, "UnknownHardware", "nobody knows")
    shown = pool_document(replace(h100_pool(), conditions=(known,)), 0)
    assert shown["conditions"] == [
        {
            "type": "HardwareKnown",
            "status": "Unknown",
            "reason": "UnknownHardware",
            "message": "nobody knows",
        }
    ]


def test_is_json():
    text = json.dumps(rounded(report(Decisions(POOLS, {JOB: placed_job()}))), allow_nan=False)
    assert JOB_UID not in text


def test_a_pool_tells_what_is_left_idle_and_what_its_use_costs_others():
    price = ShadowPrice("h100-ib", 2.5, 38.04, "each accelerator-hour here delays 3 workloads")
    plan = replace(placed_job(), prices=(price,))
    idle = {"h100-ib": ("a3-2", "a3-3"), "cpu": ()}
    h100, cpu = report(Decisions(POOLS, {JOB: plan}, idle_nodes=idle))["pools"]
    assert (h100["idleNodeCount"], cpu["idleNodeCount"]) == (2, 0)
    assert h100["shadowPricePerAcceleratorHour"] == 38.04
    assert h100["scarcity"] == "each accelerator-hour here delays 3 workloads"
    assert "scarcity" not in cpu


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (placed_job(), "8610 kWh"),
        (placed_service(h100_pool(), ServingLayout()), "1.53 kW"),
    ],
)
def test_energy_is_of_a_run_or_per_hour(plan, told):
    assert energy(entry(plan)) == told
    assert energy({}) == "-"
