"""``poolwise run``: the operator process."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

import kopf
import typer

from poolwise.cluster import logs
from poolwise.cluster.connection import Connection
from poolwise.environment import PREFIX, from_environment
from poolwise.handlers.decider import decider
from poolwise.handlers.operator import Operator
from poolwise.handlers.registry import kopf_settings, registry
from poolwise.settings import Settings


def run(
    kubeconfig: Annotated[
        str | None, typer.Option(help="File to use outside of a cluster, as kubectl does.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    namespace: Annotated[
        list[str] | None, typer.Option(help="Serve this namespace only; may be repeated.")
    ] = None,
) -> None:
    """Run the operator until it is told to stop.

    Settings come from the environment, as POOLWISE_LOG_LEVEL=debug.
    """
    given = {f"{PREFIX}NAMESPACES": ",".join(namespace)} if namespace else {}
    settings = from_environment({**os.environ, **given})
    logs.configure(settings.log_level)
    asyncio.run(_operate(Connection(settings, kubeconfig, context), settings))


async def _operate(connection: Connection, settings: Settings) -> None:
    operator = Operator(connection, settings, decider(settings))
    try:
        await operator.open()
        await kopf.operator(
            registry=registry(operator),
            settings=kopf_settings(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=operator.stop_flag,
        )
    finally:
        asyncio.get_running_loop().set_exception_handler(at_the_end)
        await operator.stop()
        if operator.failure:
            raise operator.failure


def at_the_end(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tell of errors as ever, but not that a generator was closed twice.

    kopf leaves a stream open when it is cancelled amid an event. The loop closes it at its own end,
    and at the same moment what the stream itself has open and closes.
    """
    if "asyncgen" not in context:
        loop.default_exception_handler(context)
