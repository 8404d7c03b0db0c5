"""A small synchronous client for tests and tools: plain dictionaries in and out.

The operator has its own, asynchronous one; this one only has to be pleasant in a test.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kubernetes import config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

Object = dict[str, Any]

CONNECTIONS = 16
POLL_SECONDS = 0.05
NOT_FOUND = 404
MERGE_PATCH = "application/merge-patch+json"
BACKGROUND = {"propagationPolicy": "Background"}


class Refused(Exception):
    """The API server refused a request: its HTTP status and its own sentence."""

    def __init__(self, status: int, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.causes = causes
        """One sentence for each field at fault, where the server takes the message apart."""


class Client:
    """Reads and writes any kind of object, known by its ``apiVersion`` and ``kind``."""

    def __init__(self, kubeconfig: Path) -> None:
        connection = config.new_client_from_config(str(kubeconfig))
        connection.configuration.connection_pool_maxsize = CONNECTIONS
        # The discovery is cached on a file; the default one is shared by every API server that ever
        # had this address.
        self._cache = TemporaryDirectory(prefix="discovery-")
        self._discovery = threading.Lock()  # lazy, and not made for threads
        self._dynamic = DynamicClient(connection, cache_file=f"{self._cache.name}/cache.json")

    def close(self) -> None:
        """Close the connections."""
        self._dynamic.client.close()
        self._cache.cleanup()

    def create(self, document: Object) -> Object:
        """Create; raises :class:`Refused`."""
        return self._call("create", document, body=document)

    def admit(self, document: Object) -> Object:
        """What would be stored, were it created with strict decoding; raises :class:`Refused`."""
        strict = [("fieldValidation", "Strict")]
        return self._call("create", document, body=document, dry_run="All", query_params=strict)

    def create_all(self, documents: Iterable[Object]) -> list[Object]:
        """Create many at once, over several connections."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(self.create, documents))

    def apply(self, document: Object, field_manager: str = "test") -> Object:
        """Server-side apply, by force; raises :class:`Refused`."""
        return self._call(
            "server_side_apply",
            document,
            body=document,
            name=document["metadata"]["name"],
            field_manager=field_manager,
            force_conflicts=True,
        )

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None when there is none of that name."""
        target = _target(api_version, kind, namespace)
        try:
            return self._call("get", target, name=name)
        except Refused as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise

    def list(
        self, api_version: str, kind: str, namespace: str = "", label_selector: str = ""
    ) -> list[Object]:
        """All objects of a kind, of one namespace or of all, that carry the labels."""
        target = _target(api_version, kind, namespace)
        found = self._call("get", target, label_selector=label_selector)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found["items"]]

    def patch(self, target: Object, changes: Object, subresource: str = "") -> Object:
        """Merge changes into the object that ``target`` names by kind, name and namespace.

        ``subresource`` is ``status`` or ``scale``.
        """
        name = target["metadata"]["name"]
        merge = {"body": changes, "name": name, "content_type": MERGE_PATCH}
        return self._call("patch", target, subresource, **merge)

    def clear(self, api_version: str, kind: str, namespace: str) -> None:
        """Delete all objects of a kind in a namespace at once, and what they own soon after."""
        target = _target(api_version, kind, namespace)
        everything = f"metadata.namespace={namespace}"
        options = BACKGROUND | {"gracePeriodSeconds": 0}
        self._call("delete", target, body=options, field_selector=everything)

    def delete_all(self, targets: Iterable[Object]) -> None:
        """Delete many at once, over several connections."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(self.delete, targets))

    def delete(self, target: Object) -> None:
        """Delete, and what it owns in the background; nothing happens when it is gone already."""
        try:
            self._call("delete", target, name=target["metadata"]["name"], body=BACKGROUND)
        except Refused as refusal:
            if refusal.status != NOT_FOUND:
                raise

    def delete_now(self, target: Object) -> None:
        """Delete without a grace, as a kubelet does once a pod has ended."""
        try:
            self._call(
                "delete", target, name=target["metadata"]["name"], body={"gracePeriodSeconds": 0}
            )
        except Refused as refusal:
            if refusal.status != NOT_FOUND:
                raise

    def wait_for(
        self,
        target: Object,
        until: Callable[[Object], bool],
        timeout_seconds: float = 10.0,
    ) -> Object:
        """The object that ``target`` names, once ``until`` says yes to it.

        Raises :class:`TimeoutError` with the object as it was last seen.
        """
        deadline = time.monotonic() + timeout_seconds
        metadata = target["metadata"]
        key = (target["apiVersion"], target["kind"], metadata["name"])
        while True:
            seen = self.get(*key, metadata.get("namespace", ""))
            if seen is not None and until(seen):
                return seen
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{key[1]} {key[2]} after {timeout_seconds:g} s:\n{json.dumps(seen, indent=1)}"
                )
            time.sleep(POLL_SECONDS)

    def _call(self, verb: str, target: Object, subresource: str = "", **arguments: Any) -> Object:
        namespace = target.get("metadata", {}).get("namespace")
        try:
            # Without a prefix all groups with a v1 are asked for what is in the core, and one that
            # goes just now, told of and not there, would fail it.
            with self._discovery:
                resource = self._dynamic.resources.get(
                    prefix="apis" if "/" in target["apiVersion"] else "api",
                    api_version=target["apiVersion"],
                    kind=target["kind"],
                )
            part = resource.subresources[subresource] if subresource else resource
            answer = getattr(part, verb)(namespace=namespace, serialize=False, **arguments)
        except ResourceNotFoundError as error:
            raise Refused(NOT_FOUND, str(error)) from error
        except DynamicApiError as error:
            raise Refused(error.status, _sentence(error), _causes(error)) from error
        document: Object = json.loads(answer.data)
        return document


def _target(api_version: str, kind: str, namespace: str) -> Object:
    metadata = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _sentence(error: DynamicApiError) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)


def _causes(error: DynamicApiError) -> tuple[str, ...]:
    try:
        causes = json.loads(error.body or "")["details"]["causes"]
        return tuple(f"{cause.get('field', '')}: {cause['message']}" for cause in causes)
    except (ValueError, KeyError, TypeError):
        return ()
