"""``poolwise explain``: the story of a live object, from its status."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from poolwise.cluster.clock import utc_now
from poolwise.cluster.connection import Connection
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.readiness import missing, silence
from poolwise.cluster.resources import INFERENCE_SERVICES, TRAINING_JOBS, Resource
from poolwise.environment import from_environment
from poolwise.errors import InvalidInput, NotPlanned, Unavailable
from poolwise.plan.conditions import Type
from poolwise.plan.names import GROUP
from poolwise.plan.observed import Object
from poolwise.plan.reading import is_true, mapping, objects
from poolwise.plan.status.explain import explain as story

KINDS = {
    spelling: resource
    for resource, short in ((TRAINING_JOBS, "tj"), (INFERENCE_SERVICES, "isvcp"))
    for spelling in (short, resource.kind.lower(), resource.plural, f"{resource.plural}.{GROUP}")
}

_POLL_SECONDS = 1.0


def explain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME", help="The workload, such as tj/llama-70b or isvcp/chat."
        ),
    ],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of the workload; by default that of the kubeconfig.",
        ),
    ] = None,
    kubeconfig: Annotated[str | None, typer.Option(help="File to use, as kubectl does.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    wait: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Wait up to this long until it is planned."),
    ] = 0.0,
) -> None:
    """Say where a workload runs, why, how fast, for how much, and why not elsewhere."""
    resource, name = parse_target(target)
    connection = Connection(from_environment(os.environ), kubeconfig, context)
    found = asyncio.run(_read(connection, resource, namespace, name, wait))
    if wait and not is_planned(found):
        raise NotPlanned(f"{resource.kind} {name} was not planned within {wait:g} s: {last(found)}")
    typer.echo(story(found, utc_now()))


def parse_target(target: str) -> tuple[Resource, str]:
    """``tj/llama-70b`` as the kind and the name; InvalidInput for any other form."""
    kind, _, name = target.partition("/")
    resource = KINDS.get(kind.lower())
    if resource is None or not name or "/" in name:
        allowed = "tj/NAME (TrainingJob) or isvcp/NAME (InferenceService)"
        raise InvalidInput("", f'"{target}" is not the name of a workload; write {allowed}')
    return resource, name


def is_planned(workload: Object) -> bool:
    """Whether the plan is there, and is about the spec as it is now."""
    return _is_current(workload) and is_true(mapping(workload, "status"), Type.PLANNED)


def last(workload: Object) -> str:
    """Why it is not planned, as its status says."""
    told = objects(workload, "status", "conditions")
    if not told:
        return "it has no status yet; is the operator running?"
    if not _is_current(workload):
        return "the operator has not seen its newest spec yet; is it running?"
    known = {each["type"]: each for each in told if each["status"] != "True"}
    types = (Type.ACCEPTED, Type.PLANNED, Type.READY)
    found = next((known[type_] for type_ in types if type_ in known), None)
    return f"{found['reason']}: {found['message']}" if found else "its conditions do not say why"


def _is_current(workload: Object) -> bool:
    seen = mapping(workload, "status").get("observedGeneration")
    return bool(seen == workload["metadata"].get("generation"))


async def _read(
    connection: Connection, resource: Resource, namespace: str | None, name: str, seconds: float
) -> Object:
    await connection.log_in()
    namespace = namespace or connection.context_namespace()
    kube = ApiKube(connection.client(), connection.settings, Metrics().requests)
    try:
        found = await _until_planned(lambda: kube.get(resource, namespace, name), seconds)
        if found is None:
            raise InvalidInput("", await _nothing(kube, resource, namespace, name))
    except Unavailable as error:
        told = silence(connection.configuration.host, error)
        raise type(error)(told, error.retry_after_seconds) from error
    finally:
        await kube.close()
    return found


async def _nothing(kube: ApiKube, resource: Resource, namespace: str, name: str) -> str:
    """Why nothing of that name was found: there is none, or there can be none."""
    if resource.plural not in await kube.discovered(resource.group, resource.version):
        return missing(resource)
    return f"there is no {resource.kind} {name} in namespace {namespace}"


async def _until_planned(
    read: Callable[[], Awaitable[Object | None]], seconds: float
) -> Object | None:
    """The object once it is planned, or as it is when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        found = await read()
        if found is None or is_planned(found) or loop.time() >= deadline:
            return found
        await asyncio.sleep(_POLL_SECONDS)
