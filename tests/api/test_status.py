"""What the plan writes into status is what the CRDs keep: nothing pruned, nothing refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from poolwise.api import AcceleratorPool, InferenceService, TrainingJob
from poolwise.api.base import Resource
from poolwise.api.crd import validation_schema
from poolwise.api.validation.list_types import duplicates
from poolwise.api.validation.schema_errors import schema_errors
from poolwise.api.validation.unknown_fields import unknown_fields
from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import children
from poolwise.plan.pool import Condition, Pool
from poolwise.plan.pools.objects import pool_status
from poolwise.plan.status.pods import Live
from poolwise.plan.status.workload import status
from poolwise.settings import Settings
from tests.plan.children.given import (
    cpu_pool,
    h100_pool,
    placed_job,
    placed_service,
    service,
    training_job,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POOL = h100_pool()
POOLS = {POOL.name: POOL}


def of_job(**job_status: Any) -> dict[str, Any]:
    job = training_job()
    made = children(job, placed_job(), POOL, Settings())[-1]
    return status(job, placed_job(), POOLS, Live([{**made, "status": job_status}], []), NOW)


def of_service() -> dict[str, Any]:
    plan = placed_service(POOL, ServingLayout())
    made = children(service(), plan, POOL, Settings())
    return status(service(), plan, POOLS, Live(made, []), NOW)


def of_pool(pool: Pool, free_accelerators: int | None) -> dict[str, Any]:
    ready = Condition("Ready", True, "NodesReady", "4 of 4 nodes can take work")
    told = replace(pool, conditions=(ready,))
    return pool_status({"metadata": {"generation": 1}}, told, free_accelerators, NOW)


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        (TrainingJob, of_job()),
        (TrainingJob, of_job(active=2, startTime="2026-11-21T11:00:00Z")),
        (InferenceService, of_service()),
        (AcceleratorPool, of_pool(POOL, 48)),
        (AcceleratorPool, of_pool(cpu_pool(), None)),
    ],
    ids=["placed job", "running job", "service", "pool", "CPU pool"],
)
def test_status_is_kept_as_it_is_written(resource: type[Resource], told: dict[str, Any]) -> None:
    schema = validation_schema(resource)["properties"]["status"]
    assert told["conditions"]
    assert [str(error) for error in schema_errors(told, schema, "status")] == []
    assert list(duplicates(told, schema, "status")) == []
    assert unknown_fields({"status": told}, {"properties": {"status": schema}}) == []
