"""What the speed programs measure: pools of every accelerator, work that is placed, and drift."""

from __future__ import annotations

import pytest

from bench import many_accelerators, scaling_speed
from bench.placement_speed import CALIBRATION, MANY_POOLS, NOW, TABLES
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Plan
from poolwise.settings import Settings


def test_the_many_pools_are_of_every_accelerator() -> None:
    told = decide(many_accelerators.observed(), TABLES, Settings(), CALIBRATION, NOW)
    assert len(told.pools) == MANY_POOLS
    assert {pool.accelerator for pool in told.pools} == {row.name for row in TABLES.accelerators}


@pytest.mark.parametrize("kind", ["TrainingJob", "InferenceService"])
def test_workloads_of_the_many_accelerators_can_be_placed(kind: str) -> None:
    every = many_accelerators.workloads()
    first = next(document for document in every if document["kind"] == kind)
    seen = many_accelerators.beside(many_accelerators.observed(), first)
    (outcome,) = decide(seen, TABLES, Settings(), CALIBRATION, NOW).outcomes.values()
    assert isinstance(outcome, Plan)
    assert outcome.placed


def test_lengths_drift_between_the_looks_at_a_scaled_service() -> None:
    nodes = decide(many_accelerators.observed(), TABLES, Settings(), CALIBRATION, NOW).pools
    work = scaling_speed.asked(many_accelerators.DENSE, *scaling_speed.REQUESTS["chat"])
    service, counted = scaling_speed.scaled(work, list(nodes[:1])), [0.0, 0.0, 0.0]
    means = []
    for look in range(3):
        seen = scaling_speed.seen(service, look, counted)
        told = seen.samples["replica-0"].prompt_lengths_tokens
        assert told is not None
        means.append(told.mean or 0.0)
    assert 0.0 < means[0] < means[1] < means[2]
