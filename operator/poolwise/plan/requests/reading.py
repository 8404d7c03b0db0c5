"""From an API object to a workload that can be planned; the one place that reads specs.

Admission has refused most bad input already. What slips through (an older CRD, a webhook that was
off, a file) is refused here: everything that cannot be planned is an InvalidInput with a sentence,
and nothing else is ever raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from poolwise.api import InferenceService, TrainingJob, TrainingJobSpec
from poolwise.api.placement import Placement
from poolwise.errors import InvalidInput
from poolwise.plan.decision import Key, Kind
from poolwise.plan.observed import Object
from poolwise.plan.pool import CPU
from poolwise.plan.requests.model import unknown
from poolwise.plan.requests.pod_resources import pod_resources
from poolwise.plan.requests.request import (
    Identity,
    Priority,
    ServingRequest,
    Topology,
    TrainingRequest,
    Where,
    Workload,
)
from poolwise.plan.requests.serving import read_service
from poolwise.plan.requests.training import read_training, with_zone
from poolwise.plan.wording import VALUE_LIMIT, sentence
from poolwise.settings import Settings
from poolwise.tables import Tables


def identity(resource: Object, kind: Kind) -> Identity:
    """Which object this is; works for any object at all."""
    metadata = resource.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    generation = metadata.get("generation")
    return Identity(
        Key(kind, str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")),
        str(metadata.get("uid") or ""),
        generation if isinstance(generation, int) else 0,
    )


def workload(
    resource: Object,
    kind: Kind,
    tables: Tables,
    settings: Settings,
    priorities: Mapping[str, Priority],
) -> Workload:
    """What an object asks for, whatever its status says. Raises InvalidInput.

    ``priorities`` are PriorityClasses by name; ``""`` is the cluster's default.
    """
    asked = {field: value for field, value in resource.items() if field != "status"}
    try:
        parsed = _MODELS[kind].model_validate(asked)
    except ValidationError as error:
        raise _sentence(error) from error
    except (ArithmeticError, LookupError, TypeError, RecursionError) as error:
        raise InvalidInput("spec", f"cannot be read: {error}") from error
    who = identity(resource, kind)
    spec = parsed.spec
    where = _where(who.key.namespace, spec.placement, spec.accelerators.products, tables)
    return Workload(
        identity=who,
        request=_request(parsed, tables, settings, where),
        priority=priorities.get(spec.priority_class_name, priorities.get("", Priority())),
        created=with_zone(parsed.metadata.creation_timestamp),
        is_suspended=isinstance(parsed, TrainingJob) and parsed.spec.suspend,
        is_plan_only=spec.mode == "Plan",
        start_timeout_seconds=spec.start_timeout if isinstance(spec, TrainingJobSpec) else None,
    )


def priority_classes(classes: Iterable[Object]) -> dict[str, Priority]:
    """PriorityClasses by name; the global default also as ``""``."""
    found: dict[str, Priority] = {}
    for each in classes:
        metadata, value = each.get("metadata"), each.get("value")
        if isinstance(metadata, Mapping) and isinstance(value, int):
            priority = Priority(value, each.get("preemptionPolicy") != "Never")
            found[str(metadata.get("name"))] = priority
            if each.get("globalDefault") is True:
                found[""] = priority
    return found


_MODELS: Mapping[Kind, type[TrainingJob] | type[InferenceService]] = {
    Kind.TRAINING_JOB: TrainingJob,
    Kind.INFERENCE_SERVICE: InferenceService,
}


def _request(
    parsed: TrainingJob | InferenceService, tables: Tables, settings: Settings, where: Where
) -> TrainingRequest | ServingRequest:
    pod = pod_resources(parsed.spec.run.resources)
    if isinstance(parsed, TrainingJob):
        return read_training(parsed.spec, tables, where, pod)
    return read_service(parsed.spec, tables, settings, where, pod)


def _where(namespace: str, placement: Placement, products: Iterable[str], tables: Tables) -> Where:
    return Where(
        namespace=namespace,
        products=frozenset(row for name in products for row in _products(name, tables)),
        pools=frozenset(placement.pools),
        exclude_pools=frozenset(placement.exclude_pools),
        capacity_types=frozenset(placement.capacity_types),
        topology=Topology(placement.topology.mode),
        topology_level=placement.topology.level,
    )


def _products(name: str, tables: Tables) -> tuple[str, ...]:
    """The table's names for a product: one accelerator or its slices, all that a short name means
    (``H100``), a CPU, or CPUs at large."""
    whole, mark, profile = name.partition("-MIG-")
    rows = tables.accelerators.meant(whole)
    if rows:
        return tuple(f"{row.name}{mark}{profile}" for row in rows)
    cpu = tables.cpu(name)
    if cpu is not None:
        return (cpu.name,)
    if name.upper() == CPU:
        return (CPU,)
    known = [spelling for each in tables.accelerators for spelling in (each.name, *each.aliases)]
    raise InvalidInput("spec.accelerators.products", unknown(name, "a known accelerator", known))


def _sentence(error: ValidationError) -> InvalidInput:
    """The first problem as field, value and what is allowed."""
    first = error.errors(include_url=False, include_context=False)[0]
    problem = first["msg"].removeprefix("Value error, ")
    shown = _shown(first["input"])
    told = problem[:1].lower() + problem[1:]
    if shown and shown not in told:
        told = f"is {shown}: {told}"
    return InvalidInput(_path(first["loc"]), told)


def _path(location: tuple[int | str, ...]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")


def _shown(value: Any) -> str:
    """A scalar as it was written; objects and lists are too long to repeat."""
    if value is None or isinstance(value, Mapping | list | tuple):
        return ""
    return sentence(repr(value), VALUE_LIMIT)
