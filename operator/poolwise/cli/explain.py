"""``poolwise explain``: the story of a live object, from its status."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from poolwise.cluster.connection import Connection
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import INFERENCE_SERVICES, TRAINING_JOBS, Resource
from poolwise.errors import InvalidInput
from poolwise.plan.names import GROUP
from poolwise.plan.observed import Object
from poolwise.plan.status.explain import explain as story
from poolwise.settings import from_environment

KINDS = {
    spelling: resource
    for resource, short in ((TRAINING_JOBS, "tj"), (INFERENCE_SERVICES, "isvcp"))
    for spelling in (short, resource.kind.lower(), resource.plural, f"{resource.plural}.{GROUP}")
}


def explain(
    target: Annotated[str, typer.Argument(metavar="KIND/NAME", help="As tj/llama-70b.")],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Else the kubeconfig's own.")
    ] = None,
    kubeconfig: Annotated[str | None, typer.Option(help="File to use, as kubectl does.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
) -> None:
    """Say where a workload runs, why, how fast, for how much, and why not elsewhere."""
    resource, name = parse_target(target)
    connection = Connection(from_environment(os.environ), kubeconfig, context)
    found = asyncio.run(_read(connection, resource, namespace, name))
    typer.echo(story(found))


def parse_target(target: str) -> tuple[Resource, str]:
    """``tj/llama-70b`` as the kind and the name; InvalidInput for any other form."""
    kind, _, name = target.partition("/")
    resource = KINDS.get(kind.lower())
    if resource is None or not name or "/" in name:
        allowed = "tj/NAME (TrainingJob) or isvcp/NAME (InferenceService)"
        raise InvalidInput("", f'"{target}" names no workload; write {allowed}')
    return resource, name


async def _read(
    connection: Connection, resource: Resource, namespace: str | None, name: str
) -> Object:
    await connection.log_in()
    namespace = namespace or connection.context_namespace()
    kube = ApiKube(connection.client(), connection.settings, Metrics().requests)
    try:
        found = await kube.get(resource, namespace, name)
    finally:
        await kube.close()
    if found is None:
        raise InvalidInput("", f"there is no {resource.kind} {name} in namespace {namespace}")
    return found
