"""Why a pool is out of the question for a workload before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.model.formats import arithmetic, native_arithmetic
from poolwise.model.hardware import Device
from poolwise.plan.amounts import left
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.children.engines import default_image, platform
from poolwise.plan.decision import Candidate
from poolwise.plan.limits import pays
from poolwise.plan.pool import CPU, Pool
from poolwise.plan.requests.request import Request, ServingRequest, TrainingRequest
from poolwise.plan.wording import amount_of, money, percent, plural
from poolwise.settings import Settings

FULL_PRECISION = ("fp32", "tf32")
HALF_PRECISION = ("bf16", "fp16")
UNPRICED, SET_PRICE = "no price of it is known", "set spec.price of its AcceleratorPool"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A reason of Candidate: a code for machines, and a clause for people."""

    reason_code: str
    reason: str
    shortfall: float = math.inf
    """What is needed over what there is, where a number decided."""


def exclusion(request: Request, pool: Pool, settings: Settings) -> Exclusion | None:
    """The first reason against the pool; None when it is worth a prediction."""
    found = _of_any(request, pool)
    if found is None and isinstance(request, TrainingRequest):
        found = _of_training(request, pool)
    elif found is None and isinstance(request, ServingRequest):
        found = _of_service(request, pool, settings)
    return Exclusion(*found) if found else None


def too_dear(
    pool: Pool, cost: float | None, limit: float | None, name: str, currency: str, per: str = ""
) -> Exclusion | None:
    """Why a cost breaks a limit on money, or nobody can tell whether it does; None: it keeps it,
    or there is none.

    :param name: of the limit's field.
    :param per: of what the cost is, in words after it.
    """
    if limit is None:
        return None
    told = f"{name} is {money(limit, currency)}"
    if cost is None:
        known = pool.price_problem or UNPRICED
        remedy = "" if pool.price_problem else f": {SET_PRICE}"
        return Exclusion(Verdict.PRICE_UNKNOWN, f"{known}, and {told}{remedy}")
    if pays(limit, cost):
        return None
    told = f"would cost {money(cost, currency)}{per}, {told}"
    return Exclusion(Verdict.TOO_EXPENSIVE, told, cost / limit if limit else math.inf)


def excluded(pool: Pool, reason: Exclusion) -> Candidate:
    """The candidate of a pool that is out of the question."""
    return Candidate(
        pool=pool.name,
        accelerator=pool.accelerator,
        feasible=False,
        reason=reason.reason,
        reason_code=reason.reason_code,
        shortfall=reason.shortfall,
    )


def _of_any(request: Request, pool: Pool) -> tuple[str, str] | None:
    where = request.where
    if pool.unusable_reason is not None:
        return _code_of_unusable(pool), pool.unusable_reason
    if pool.machine is None:
        return _without_machine(pool)
    if pool.allowed_namespaces and where.namespace not in pool.allowed_namespaces:
        return Verdict.NAMESPACE_NOT_ALLOWED, f"does not admit namespace {where.namespace}"
    if where.pools and pool.name not in where.pools:
        return Verdict.NOT_SELECTED, f"is not among placement.pools ({_listed(where.pools)})"
    if pool.name in where.exclude_pools:
        return Verdict.EXCLUDED, "is among placement.excludePools"
    if where.capacity_types and pool.capacity_type not in where.capacity_types:
        wanted = _listed(where.capacity_types)
        return Verdict.CAPACITY_TYPE_EXCLUDED, f"is {pool.capacity_type}, placement wants {wanted}"
    if where.products and not where.products & products(pool):
        wanted = _listed(where.products)
        return (
            Verdict.PRODUCT_EXCLUDED,
            f"has {pool.accelerator}, accelerators.products wants {wanted}",
        )
    if pool.name in dict(where.avoided):
        return Verdict.START_TIMEOUT, dict(where.avoided)[pool.name]
    if not pool.usable_nodes:
        return Verdict.NO_USABLE_NODE, _no_usable_node(pool)
    return _missing(request, pool)


def _missing(request: Request, pool: Pool) -> tuple[str, str] | None:
    """A resource that pods ask for beside the accelerators, and that no node of the pool has."""
    for name, each in request.pod.others:
        if all(left(node.others, name) == 0 for node in pool.nodes):
            there = sum(not node.is_to_come for node in pool.nodes)
            told = f"has no {name} on its {plural(there, 'node')}"
            return Verdict.RESOURCE_MISSING, f"{told}, each pod asks for {amount_of(name, each)}"
    return None


def _of_training(request: TrainingRequest, pool: Pool) -> tuple[str, str] | None:
    if pool.is_cpu:
        return Verdict.CPU_POOL, "has no accelerators, and training runs on accelerators only"
    if pool.is_mig:
        return (
            Verdict.MIG_SLICES,
            "has MIG slices, which have no links to each other: for services only",
        )
    if pool.in_whole_slices(request.least) > request.most:
        wanted = " to ".join(dict.fromkeys((f"{request.least:,}", f"{request.most:,}")))
        return Verdict.PART_OF_SLICE, _part_of_slice(pool, f"accelerators wants {wanted}")
    device = pool.machine.device if pool.machine else None
    if device and device.inference_only_reason:
        return Verdict.INFERENCE_ONLY, f"{device.name} {device.inference_only_reason}"
    return _of_precision(request.work.precision, device) if device else None


def _of_precision(precision: str, device: Device) -> tuple[str, str] | None:
    if native_arithmetic(precision, device.peak_flops_per_second) is not None:
        return None
    return Verdict.FORMAT_UNSUPPORTED, f"{device.name} does not compute in {precision}"


def precision_remark(precision: str, device: Device) -> str:
    """What a run should know that computes 16 bits at the rate of fp32, as bf16 on Turing does."""
    peaks = device.peak_flops_per_second
    unit = native_arithmetic(precision, peaks)
    if unit not in FULL_PRECISION or precision in FULL_PRECISION:
        return ""
    known = [each for each in HALF_PRECISION if each in peaks]
    advice = f"; training.precision {' or '.join(known)} would be faster" if known else ""
    return f"{device.name} computes {precision} at the rate of {unit}{advice}"


def quantization_remark(quantization: str, device: Device) -> str:
    """What a service should know whose weights the device multiplies more slowly than ones of 16
    bits, as Blackwell Ultra does int8."""
    peaks = device.peak_flops_per_second
    unit, wide = native_arithmetic(quantization, peaks), arithmetic("bf16", peaks)
    if unit is None or wide is None or peaks[unit] >= peaks[wide]:
        return ""
    told = f"{device.name} computes {quantization} at {percent(peaks[unit] / peaks[wide])}"
    return f"{told} of the rate of {wide}, which model.quantization None goes by"


def _of_service(request: ServingRequest, pool: Pool, settings: Settings) -> tuple[str, str] | None:
    engine = request.work.engine
    if pool.is_mig and _accelerators(request) > 1:
        wanted = _accelerators(request)
        return (
            Verdict.MIG_SLICES,
            f"has MIG slices, which serve alone: a replica wants {wanted} together",
        )
    if pool.slice_accelerators not in (1, _accelerators(request)):
        alone = f"a replica wants {_accelerators(request)}"
        return Verdict.PART_OF_SLICE, _part_of_slice(pool, alone)
    if pool.is_cpu and (request.fixed.accelerators or _accelerators(request) > 1):
        return Verdict.CPU_POOL, f"has no accelerators, a replica wants {_accelerators(request)}"
    if request.has_image or default_image(engine, pool, settings):
        return None
    hardware = "CPUs" if pool.is_cpu else platform(pool) or pool.accelerator
    if engine == "custom":
        return Verdict.NO_ENGINE, "needs run.image, and none is given"
    told = f"needs an image of {engine} for {hardware}, and none is known: give engine.image"
    return Verdict.NO_ENGINE, told


def _part_of_slice(pool: Pool, wanted: str) -> str:
    told = f"has slices of {pool.slice_accelerators} on {pool.hosts_per_slice} hosts each"
    return f"{told}, which run as a whole: {wanted}"


def products(pool: Pool) -> frozenset[str]:
    """Names that ``accelerators.products`` may mean the pool by."""
    names = {pool.accelerator or ""}
    if pool.is_cpu and pool.machine:
        names |= {CPU, pool.machine.device.name}
    return frozenset(names)


def _accelerators(request: ServingRequest) -> int:
    """What the user asks for each replica at least."""
    fixed = request.fixed
    return fixed.accelerators or (fixed.tensor or 1) * (fixed.pipeline or 1)


def _code_of_unusable(pool: Pool) -> str:
    """The reason of the pool's own condition, else a general one."""
    ready = next((each for each in pool.conditions if each.type == "Ready"), None)
    return ready.reason if ready else Verdict.POOL_UNUSABLE


def _without_machine(pool: Pool) -> tuple[str, str]:
    """A named CPU is no machine before there is a node that says how many cores it has."""
    if not pool.usable_nodes:
        return Verdict.NO_USABLE_NODE, _no_usable_node(pool)
    return Verdict.UNKNOWN_HARDWARE, "its hardware is unknown"


def _no_usable_node(pool: Pool) -> str:
    if not pool.nodes:
        return "has no node now" + (f", and {pool.growth_problem}" if pool.growth_problem else "")
    first = pool.nodes[0]
    return f"has no usable node: {first.name} {first.unusable_reason}" + (
        f", and {len(pool.nodes) - 1} more cannot be used" if len(pool.nodes) > 1 else ""
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
