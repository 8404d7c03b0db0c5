"""The record of a placement as JSON, on the child that runs the pods (``poolwise.dev/placement``).

Small and deterministic, since it is compared and stored with every child. A record that somebody
damaged is no record: :func:`parse` answers None and never raises.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from poolwise.plan.decision import Claim, Key, Kind, PlacementRecord
from poolwise.plan.kueue.record import Queueing
from poolwise.plan.records.runtimes import Runtime
from poolwise.plan.records.shape import serving_layout, shape, training_layout, whole

_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Queue(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    name: str
    selector: dict[str, str] = {}
    priority: str = ""
    is_pod_priority: bool = True
    is_gated: bool = False


class _Document(BaseModel):
    """The JSON, checked: an edited record must not free capacity that is in use."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    version: Literal[1]
    generation: _Count
    pool: Annotated[str, Field(min_length=1)]
    accelerator: Annotated[str, Field(min_length=1)]
    resource: str | None = None
    count: _Count
    replicas: _Count | None = None
    shape: dict[str, Any]
    claim: dict[str, tuple[_Count, _Amount, _Amount]]
    """By node: accelerators, cores, bytes of memory."""
    others: dict[str, dict[str, _Amount]] = {}
    """By resource, then by node: all else, its pods included."""
    start_budget_seconds: _Count | None = None
    drain_seconds: _Count | None = None
    memory_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    kv_cache_bytes: _Count | None = None
    may_surge: bool = False
    hub_id: str | None = None
    domain: dict[str, str] = {}
    runtime: Runtime | None = None
    queue: _Queue | None = None
    nodes_per_replica: Annotated[int, Field(ge=1)] = 1


def render(record: PlacementRecord) -> str:
    """The annotation's value: compact JSON with sorted keys."""
    document = {
        "version": 1,
        "generation": record.generation,
        "pool": record.pool,
        "accelerator": record.accelerator,
        "resource": record.resource,
        "count": record.count,
        "replicas": record.replicas,
        "shape": shape(record.layout),
        "claim": _by_node(record.claim),
        "others": _others(record.claim),
        "startBudgetSeconds": record.start_budget_seconds,
        "drainSeconds": record.drain_seconds,
        "memoryFraction": record.memory_fraction,
        "kvCacheBytes": record.kv_cache_bytes,
        "maySurge": record.may_surge or None,
        "hubId": record.hub_id,
        "domain": dict(record.domain) or None,
        "runtime": record.runtime,
        "queue": _queue(record.queue),
        "nodesPerReplica": record.nodes_per_replica if record.nodes_per_replica > 1 else None,
    }
    present = {name: value for name, value in document.items() if value is not None}
    return json.dumps(present, sort_keys=True, separators=(",", ":"))


def parse(text: str | None, key: Key) -> PlacementRecord | None:
    """The record of the workload ``key``; None for anything that :func:`render` did not write."""
    try:
        record = _record(_Document.model_validate_json(text or ""), key)
    except ValueError:  # what is no JSON, has a wrong type (ValidationError), or no such layout
        return None
    return record if _holds_what_it_runs(record) else None


def _record(document: _Document, key: Key) -> PlacementRecord:
    to_layout = training_layout if key.kind is Kind.TRAINING_JOB else serving_layout
    return PlacementRecord(
        generation=document.generation,
        accelerator=document.accelerator,
        resource=document.resource,
        count=document.count,
        replicas=document.replicas,
        layout=to_layout(document.shape),
        claim=_claim(document, key),
        start_budget_seconds=document.start_budget_seconds,
        drain_seconds=document.drain_seconds,
        memory_fraction=document.memory_fraction,
        kv_cache_bytes=document.kv_cache_bytes,
        may_surge=document.may_surge,
        hub_id=document.hub_id,
        domain=document.domain,
        runtime=document.runtime.value if document.runtime else None,
        queue=Queueing(**document.queue.model_dump()) if document.queue else None,
        nodes_per_replica=document.nodes_per_replica,
    )


def _queue(queue: Queueing | None) -> dict[str, Any] | None:
    """The fields that say something."""
    if queue is None:
        return None
    document = _Queue(**dataclasses.asdict(queue))
    return document.model_dump(by_alias=True, exclude_defaults=True)


def _holds_what_it_runs(record: PlacementRecord) -> bool:
    held = sum(record.claim.accelerators_by_node.values())
    return held == record.count * (1 if record.replicas is None else record.replicas)


def _by_node(claim: Claim) -> dict[str, list[float]]:
    kinds = (claim.accelerators_by_node, claim.cores_by_node, claim.memory_bytes_by_node)
    nodes = sorted(set().union(*kinds))
    return {node: [whole(kind.get(node, 0)) for kind in kinds] for node in nodes}


def _others(claim: Claim) -> dict[str, dict[str, float]] | None:
    held = claim.others.items()
    return {
        name: {node: whole(amount) for node, amount in by_node.items()} for name, by_node in held
    } or None


def _claim(document: _Document, key: Key) -> Claim:
    def held(index: int) -> Mapping[str, Any]:
        return {node: row[index] for node, row in document.claim.items() if row[index]}

    return Claim(key, document.pool, held(0), held(1), held(2), document.resource, document.others)
