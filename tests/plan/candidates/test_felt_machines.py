"""What a workload cannot feel changes no answer, so that pools may share one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model.serving.prediction import predict_serving
from poolwise.model.training.step import predict_training
from poolwise.model.work import (
    Metric,
    ServingLayout,
    ServingWork,
    Target,
    Tokens,
    TrainingLayout,
    TrainingWork,
)
from poolwise.plan.candidates.machines import felt_by_replica, felt_by_run, fully_fed
from tests.plan.cluster_given import h100, job, plan_of
from tests.plan.machines import CALIBRATION, machine, model

RUN = TrainingWork(model("llama-3.1-8b"), 64, 4096, "bf16", steps=1000.0)
LAYOUTS = [
    TrainingLayout(data=8, zero_stage=3),
    TrainingLayout(data=2, tensor=4),
    TrainingLayout(data=4, pipeline=2),
]
CHAT = ServingWork(
    model("llama-3.1-8b"), None, Tokens(400, 1500), Tokens(200, 600), 0.0, 8192,
    (Target(Metric.TTFT, 99, 2.0), Target(Metric.ITL, 99, 0.1)),
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["H100-SXM5-80GB", "L40S"])
def test_a_run_inside_a_node_feels_no_network_and_no_storage(name, layout):
    here = machine(name)
    felt = felt_by_run(here, RUN, layout.count)
    assert felt != here
    told = [predict_training(RUN, layout, each, CALIBRATION) for each in (here, felt)]
    assert told[0] == told[1]


def test_a_run_over_nodes_feels_the_network():
    here = machine("H100-SXM5-80GB")
    assert felt_by_run(here, RUN, 16).interconnect == here.interconnect


def test_a_run_that_may_stay_in_a_node_feels_the_network_where_it_does_not():
    either = plan_of(h100(2), job(accelerators={"min": 8, "max": 16})).chosen
    (over_nodes,) = plan_of(h100(2), job(count=16)).chosen.offers
    assert {each.count: each.seconds for each in either.offers}[16] == over_nodes.seconds


def test_a_run_that_reads_or_writes_feels_storage():
    here = machine("H100-SXM5-80GB")
    for work in (
        replace(RUN, bytes_per_sample=1e5),
        replace(RUN, cpu_seconds_per_sample=1e-3),
        replace(RUN, checkpoint_interval_seconds=600.0),
    ):
        assert felt_by_run(here, work, 8).host == here.host
        layout = LAYOUTS[0]
        hungry, fed = (
            predict_training(work, layout, each, CALIBRATION) for each in (here, fully_fed(here))
        )
        assert fed.step_seconds.mid <= hungry.step_seconds.mid
        assert not {"Input", "Checkpoint"} & {
            term.name for term in fed.ledger if term.seconds > 1e-9
        }


def test_fast_links_that_join_half_a_node_leave_the_network_to_the_rest():
    whole = machine("H100-SXM5-80GB")
    halves = replace(whole, interconnect=replace(whole.interconnect, domain_accelerators=4))
    assert felt_by_run(halves, RUN, 8).interconnect == halves.interconnect
    assert felt_by_replica(halves).interconnect == halves.interconnect


@pytest.mark.parametrize("tensor", [1, 8])
@pytest.mark.parametrize("name", ["H100-SXM5-80GB", "L40S"])
def test_a_replica_feels_its_devices_alone(name, tensor):
    here = machine(name)
    layout = ServingLayout(tensor=tensor)
    told = [
        predict_serving(CHAT, layout, each, CALIBRATION, 1.0)
        for each in (here, felt_by_replica(here))
    ]
    assert told[0] == told[1]


def test_equal_machines_have_one_page():
    assert hash(machine("L40S")) == hash(machine("L40S"))
    assert machine("L40S") == machine("L40S")
