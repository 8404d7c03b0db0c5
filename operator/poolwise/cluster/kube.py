"""The API server, as a few verbs on plain dicts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from math import ceil, inf
from typing import Any, Protocol

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient
from prometheus_client import Counter

from poolwise.cluster.answers import Document, read_answer, read_event
from poolwise.cluster.kube_errors import Expired, translated
from poolwise.cluster.resources import Resource, resource_of
from poolwise.errors import ClusterError, Conflict, NotFound, Unreachable, Untrusted
from poolwise.plan.names import FIELD_MANAGER
from poolwise.plan.observed import Object
from poolwise.settings import Settings

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=75)
"""Of a watch, in seconds: bookmarks come about every minute."""
_APPLY = "application/apply-patch+yaml; charset=utf-8"
"""Of a body that is written already: without the parameter the client would write JSON itself."""
_BEYOND_ASCII = re.compile("[\x7f-\uffff]")
"""Of the characters that JSON can write as one escape."""
_METHODS = {
    "list": "get",
    "get": "get",
    "create": "post",
    "replace": "put",
    "apply": "patch",
    "patch": "patch",
    "delete": "delete",
}


class Kube(Protocol):
    """What the operator may do to a cluster. All of them raise :class:`ClusterError`.

    A write is given up after ``limit_seconds``, by the API server too: it is not made later.
    """

    def pages(
        self, resource: Resource, namespace: str | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[list[Document]]:
        """List the collection; a page is an ordinary list."""

    async def peek(self, resource: Resource, namespace: str | None = None) -> None:
        """List one object at most: only whether that is answered, and allowed."""

    async def discovered(self, group: str, version: str) -> frozenset[str]:
        """Plurals of the kinds that the API server's discovery tells of."""

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Versions that are served, by group of the API."""

    def watch(
        self, resource: Resource, namespace: str | None = None, version: str | None = None
    ) -> AsyncIterator[tuple[str, Document]]:
        """Changes after that resourceVersion, as (type, object), until the stream ends.

        Without a version, what is there comes first. BOOKMARKs are among the changes.
        """

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Document | None:
        """Read one object; None when there is none."""

    async def create(self, document: Object, limit_seconds: float = inf) -> Document:
        """Create an object; Conflict when there is one of that name."""

    async def replace(self, document: Object, limit_seconds: float = inf) -> Document:
        """Write an object whole; Conflict unless its resourceVersion is the current one."""

    async def apply(self, document: Object, limit_seconds: float = inf) -> Document:
        """Server-side apply, as field manager ``poolwise``, taking fields over by force.

        With a uid in the document, Conflict unless it is that of the object.
        """

    async def patch(
        self,
        document: Object,
        changes: Object,
        subresource: str = "",
        limit_seconds: float = inf,
    ) -> Document:
        """Merge ``changes`` into exactly this object (its uid), or into its ``status``."""

    async def delete(self, document: Object, limit_seconds: float = inf) -> None:
        """Delete exactly this object (its uid); what is gone already is no error."""


class ApiKube:
    """:class:`Kube` on ``kubernetes.aio``."""

    def __init__(self, client: ApiClient, settings: Settings, requests: Counter) -> None:
        self._client = client
        self._requests = requests
        # Not awaited: that would discover every kind of the cluster, and ours are known.
        self._dynamic = DynamicClient(client)
        self._limit_seconds = settings.request_timeout_seconds
        self._page_size = settings.list_page_size

    async def pages(
        self, resource: Resource, namespace: str | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[list[Document]]:
        """List the collection; a page is an ordinary list.

        A continue token that expired half-way (410) starts the list again, so that a page may
        repeat objects.
        """
        token: str | None = None
        while True:
            try:
                answer = await self._list(
                    resource, namespace, metadata_only, limit=self._page_size, _continue=token
                )
            except Expired:
                if token is None:
                    raise
                token = None
                continue
            yield [
                {"apiVersion": resource.api_version, "kind": resource.kind} | item
                for item in answer.get("items") or []
            ]
            token = answer["metadata"].get("continue")
            if not token:
                return

    async def peek(self, resource: Resource, namespace: str | None = None) -> None:
        """List one object at most: only whether that is answered, and allowed."""
        await self._list(resource, namespace, metadata_only=True, limit=1)

    async def discovered(self, group: str, version: str) -> frozenset[str]:
        """Plurals of the kinds that the API server's discovery tells of."""
        if version not in (await self.groups()).get(group, ()):
            return frozenset()
        kinds = await self._discover(f"/apis/{group}/{version}")
        return frozenset(each["name"] for each in kinds.get("resources") or ())

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Versions that are served, by group of the API."""
        answer = await self._discover("/apis")
        return {
            group["name"]: tuple(each["version"] for each in group["versions"])
            for group in answer.get("groups") or ()
        }

    async def watch(
        self, resource: Resource, namespace: str | None = None, version: str | None = None
    ) -> AsyncIterator[tuple[str, Document]]:
        """Changes after that resourceVersion, as (type, object), until the stream ends.

        A stream that is silent for longer than bookmarks are apart is broken: Unreachable.
        """
        what = f"watch {resource.path(namespace)}"
        with _answers(what):
            response = await self._dynamic.request(
                "get",
                resource.path(namespace),
                serialize=False,
                label_selector=resource.label_selector or None,
                resource_version=version,
                watch="true",
                query_params=[("allowWatchBookmarks", "true")],
                _request_timeout=_STREAM_TIMEOUT,
            )
            try:
                async for line in response.content:
                    yield read_event(line, what)
            finally:
                response.close()

    async def _discover(self, path: str) -> Document:
        return await self._request("get", "discovery", path)

    async def _list(
        self, resource: Resource, namespace: str | None, metadata_only: bool, **options: Any
    ) -> Document:
        return await self._request(
            "list",
            resource.plural,
            resource.path(namespace),
            **options,
            label_selector=resource.label_selector or None,
            field_selector=resource.field_selector or None,
            header_params={"Accept": _METADATA_ONLY} if metadata_only else {},
        )

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Document | None:
        """Read one object; None when there is none."""
        try:
            return await self._request("get", resource.plural, resource.path(namespace, name))
        except NotFound:
            return None

    async def create(self, document: Object, limit_seconds: float = inf) -> Document:
        """Create an object; Conflict when there is one of that name."""
        resource = resource_of(document)
        path = resource.path(document["metadata"].get("namespace"))
        return await self._write(
            "create",
            resource.plural,
            path,
            limit_seconds,
            body=document,
            field_manager=FIELD_MANAGER,
        )

    async def replace(self, document: Object, limit_seconds: float = inf) -> Document:
        """Write an object whole; Conflict unless its resourceVersion is the current one."""
        return await self._write(
            "replace",
            *_target(document),
            limit_seconds,
            body=document,
            field_manager=FIELD_MANAGER,
        )

    async def apply(self, document: Object, limit_seconds: float = inf) -> Document:
        """Server-side apply, as field manager ``poolwise``, taking fields over by force.

        With a uid in the document, Conflict unless it is that of the object.
        """
        return await self._write(
            "apply",
            *_target(document),
            limit_seconds,
            body=_yaml(document),
            content_type=_APPLY,
            field_manager=FIELD_MANAGER,
            force_conflicts="true",
        )

    async def patch(
        self,
        document: Object,
        changes: Object,
        subresource: str = "",
        limit_seconds: float = inf,
    ) -> Document:
        """Merge ``changes`` into exactly this object (its uid), or into its ``status``."""
        plural, path = _target(document)
        return await self._write(
            "patch",
            plural,
            f"{path}/{subresource}".rstrip("/"),
            limit_seconds,
            # A patch of the uid changes nothing, but is a conflict on another object of the name.
            body={
                **changes,
                "metadata": {**changes.get("metadata", {}), "uid": document["metadata"]["uid"]},
            },
            content_type="application/merge-patch+json",
            field_manager=FIELD_MANAGER,
        )

    async def delete(self, document: Object, limit_seconds: float = inf) -> None:
        """Delete exactly this object (its uid); what is gone already is no error."""
        body = {
            "preconditions": {"uid": document["metadata"]["uid"]},
            "propagationPolicy": "Background",
        }
        try:
            await self._write("delete", *_target(document), limit_seconds, body=body)
        except (NotFound, Conflict):
            return  # gone, or another object has the name now

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _write(
        self, verb: str, plural: str, path: str, limit_seconds: float, **options: Any
    ) -> Document:
        """Not made any more after so long, whatever holds it up inside the API server (a queue, a
        webhook), even where that does not see us hang up."""
        limit_seconds = min(limit_seconds, self._limit_seconds)
        limit = f"{ceil(limit_seconds * 1000)}ms"  # of 0 it would think what it likes
        query = [("timeout", limit)]
        return await self._request(verb, plural, path, limit_seconds, query_params=query, **options)

    async def _request(
        self,
        verb: str,
        plural: str,
        path: str,
        limit_seconds: float | None = None,
        **options: Any,
    ) -> Document:
        # aiohttp would round longer limits up to whole seconds.
        timeout = aiohttp.ClientTimeout(limit_seconds or self._limit_seconds, ceil_threshold=inf)
        code = "none"
        try:
            with _answers(f"{verb} {path}"):
                response = await self._dynamic.request(
                    _METHODS[verb], path, serialize=False, _request_timeout=timeout, **options
                )
                document = read_answer(await response.read(), f"{verb} {path}")
            code = "200"
        except ClusterError as error:
            if isinstance(error.__cause__, ApiException):
                code = str(error.__cause__.status)
            raise
        finally:
            self._requests.labels(verb, plural, code).inc()
        return document


@contextmanager
def _answers(what: str) -> Iterator[None]:
    """Errors of the client as ours; ``what`` was asked for."""
    try:
        yield
    except ApiException as error:
        raise translated(error, what) from error
    except aiohttp.ClientSSLError as error:
        raise Untrusted(f"{what}: {_distrust(error)}") from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{what}: {_reason(error)}") from error


def _distrust(error: aiohttp.ClientSSLError) -> str:
    """What is wrong with the certificate, as OpenSSL says; else how TLS failed."""
    if not isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{type(error).__name__} {error}"
    told = error.certificate_error
    return getattr(told, "verify_message", "") or str(told)


def _reason(error: Exception) -> str:
    """The system's own word where nobody listens: the client's has the address once more."""
    if isinstance(error, aiohttp.ClientConnectorError) and (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)
    return f"{type(error).__name__} {error}".rstrip()


def _yaml(document: Object) -> bytes:
    """As JSON, and as it is in YAML too: characters that JSON escapes as two halves (an emoji) are
    written out, since YAML knows no halves; all others are escaped, since YAML takes some of them
    for ends of lines and others for none of its own."""
    text = json.dumps(document, ensure_ascii=False)
    return _BEYOND_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _target(document: Object) -> tuple[str, str]:
    metadata, resource = document["metadata"], resource_of(document)
    return resource.plural, resource.path(metadata.get("namespace"), metadata["name"])
