"""The kopf shell: each function hands one event on, in a line or two.

``on.event`` only: kopf's other handlers write to every object they see (progress, finalizers).
"""

from __future__ import annotations

import asyncio
from typing import Any

import kopf

from poolwise.cluster.patience import Patience
from poolwise.cluster.resources import WATCHED, Resource
from poolwise.errors import PoolwiseError
from poolwise.handlers.operator import Operator
from poolwise.plan.names import GROUP


def registry(operator: Operator) -> kopf.OperatorRegistry:
    """Handlers that work for ``operator``; nothing global, so that tests may have several."""
    handlers = kopf.OperatorRegistry()
    _register_life(operator, handlers)
    for resource in WATCHED:
        _register_events(operator, resource, handlers)
    return handlers


def _register_life(operator: Operator, handlers: kopf.OperatorRegistry) -> None:
    @kopf.on.startup(registry=handlers, id="start")
    async def start(**_: Any) -> None:
        try:
            await operator.start()
        except asyncio.CancelledError:  # told to end while it waits: kopf skips its cleanup then
            await operator.stop()
            raise
        except PoolwiseError as error:  # any other error would be tried again, for ever
            operator.fail(error)
            raise kopf.PermanentError(str(error)) from error

    @kopf.on.cleanup(registry=handlers, id="stop")
    async def stop(**_: Any) -> None:
        await operator.stop()

    @kopf.on.login(registry=handlers, id="login", errors=kopf.ErrorsMode.PERMANENT)
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        server, session = await operator.watch_session()
        return kopf.AiohttpSession(server=server, aiohttp_session=session)


def _register_events(
    operator: Operator, resource: Resource, handlers: kopf.OperatorRegistry
) -> None:
    @kopf.on.event(
        resource.group, resource.version, resource.plural, registry=handlers, id=str(resource)
    )
    async def event(event: kopf.RawEvent, **_: Any) -> None:
        operator.see(resource, event["type"], event["object"])


def kopf_settings() -> kopf.OperatorSettings:
    """kopf, told to watch and to do nothing else; each line undoes a default that would hurt."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # our own Events are deduplicated
    settings.queueing.worker_limit = 500  # bounds memory; handlers return at once
    settings.queueing.idle_timeout = 0.1  # with a limit, idle workers would hold the others up
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = Patience()  # kopf would give up, and end, after 54 s
    settings.scanning.disabled = True  # the chart installs the CRDs; less RBAC
    settings.process.ultimate_exiting_timeout = 25  # below a pod's grace period of 30 s
    settings.persistence.finalizer = f"{GROUP}/finalizer"  # never set, but never the shared one
    for resource in WATCHED:
        key = (resource.group, resource.version, resource.plural)
        if resource.label_selector:
            settings.watching.label_selectors[key] = resource.label_selector
        if resource.field_selector:
            settings.watching.field_selectors[key] = resource.field_selector
    return settings
