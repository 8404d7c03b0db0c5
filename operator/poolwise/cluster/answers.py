"""What the API server answers, as documents; a page of a proxy and the half of a line are none."""

from __future__ import annotations

import json
from typing import Any

from kubernetes.aio.client.exceptions import ApiException

from poolwise.cluster.kube_errors import translated
from poolwise.errors import Unavailable

Document = dict[str, Any]


def read_answer(text: bytes, what: str) -> Document:
    """An object of Kubernetes, or a list of some; ``what`` was asked for.

    :raises Unavailable: for anything else.
    """
    document = _document(text, what)
    if "kind" not in document:
        raise Unavailable(f"{what}: the answer is no object of Kubernetes")
    return document


def read_event(line: bytes, what: str) -> tuple[str, Document]:
    """Type and object of an event of a watch.

    :raises ClusterError: for an error that the stream tells of.
    :raises Unavailable: for a line that is no event.
    """
    document = _document(line, what)
    change, about = document.get("type"), document.get("object")
    if not isinstance(change, str) or not isinstance(about, dict):
        raise Unavailable(f"{what}: a line is no event")
    if change != "ERROR":
        return change, about
    error = ApiException(status=about.get("code"), reason=about.get("message"))
    raise translated(error, what)


def _document(text: bytes, what: str) -> Document:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Unavailable(f"{what}: the answer is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise Unavailable(f"{what}: the answer is no JSON object")
    return document
