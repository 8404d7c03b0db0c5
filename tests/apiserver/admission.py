"""Asks the API server what it would say of an object, in a form that can be compared."""

from __future__ import annotations

import time

from e2e.controlplane.client import POLL_SECONDS, Client, Object, Refused

TIMEOUT_SECONDS = 20.0

_STRICT = "strict decoding error: "
_NOT_CHECKED = "some validation rules were not checked because the object was invalid"
"""A note of the server on its own procedure; it is about no field."""
_ACCESSOR = ".spec.replicas accessor error"
"""The scale subresource repeats, in Go's words, that a type is wrong."""


def verdict(client: Client, document: Object) -> tuple[list[str], Object]:
    """The server's sentences in order, and what it would store when there are none."""
    try:
        return [], client.admit(document)
    except Refused as refusal:
        if _STRICT in refusal.message:
            return sorted(refusal.message.split(_STRICT)[1].split(", ")), {}
        sentences = refusal.causes or (refusal.message,)
        return sorted(s for s in sentences if _NOT_CHECKED not in s and _ACCESSOR not in s), {}


def in_namespace(document: Object, namespace: str) -> Object:
    """A copy for that namespace; as it is where the kind has none."""
    if document.get("kind") == "AcceleratorPool":
        return document
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def await_refused(client: Client, document: Object, words: str) -> None:
    """Return once the server would refuse the object with these words: admission learns of a quota
    or a policy a moment after it is there.

    Raises :class:`TimeoutError`.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            client.admit(document)
        except Refused as refusal:
            if words in refusal.message:
                return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"{document['kind']} is not refused after {TIMEOUT_SECONDS:g} s: {words}")


def accelerator_pod(namespace: str, accelerators: int) -> Object:
    """A pod that wants so many, to ask whether it would be taken."""
    limits = {"limits": {"nvidia.com/gpu": str(accelerators)}}
    container = {"name": "main", "image": "registry.example.com/x:1", "resources": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": namespace},
        "spec": {"containers": [container]},
    }
