"""Asks the API server what it would say of an object, in a form that can be compared."""

from __future__ import annotations

from e2e.controlplane.client import Client, Object, Refused

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
