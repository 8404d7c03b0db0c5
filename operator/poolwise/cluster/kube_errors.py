"""Answers of the API server that are errors, as ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic.exceptions import DynamicApiError

from poolwise.cluster.patience import retry_after_seconds
from poolwise.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NamespaceEnds,
    NotFound,
    Refused,
    Unauthorized,
    Unavailable,
)

_FORBIDDEN = 403
_EXPIRED = 410
_RIGHTS = re.compile(r".*\bUser \"[^\"]*\" cannot ")
"""How the API server says that a right is missing; admission answers 403 in other words."""
_NAMESPACE_ENDS = "NamespaceTerminating"
"""The cause that the API server gives where a namespace is being deleted."""
_MESSAGE_LIMIT = 1000
"""Characters of a server's message that we keep: it ends up in logs and conditions."""


class Expired(Unavailable):
    """The continue token of a list, or the version that a watch goes on from, is too old."""


_ERRORS: Mapping[int, type[ClusterError]] = {
    400: Refused,
    401: Unauthorized,
    _FORBIDDEN: Forbidden,
    404: NotFound,
    409: Conflict,
    _EXPIRED: Expired,
    413: Refused,
    422: Refused,
}


def translated(error: ApiException, what: str) -> ClusterError:
    """Our error for an answer that is none; ``what`` was asked for."""
    status = int(error.status or 0)
    sentence = _message(error)
    message = f"{what}: {sentence}"
    if status == _FORBIDDEN and not _RIGHTS.match(sentence):
        ends = _NAMESPACE_ENDS in _causes(error)
        return NamespaceEnds(message) if ends else Refused(message)  # by a quota, a policy
    if status in _ERRORS:
        return _ERRORS[status](message)
    header = (error.headers or {}).get("Retry-After", "")
    return Unavailable(message, retry_after_seconds(header))


def _causes(error: ApiException) -> list[str]:
    """Machine-readable causes in the API server's Status; none in an answer of somebody else."""
    try:
        causes = json.loads(error.body or "")["details"]["causes"]
        return [str(each["reason"]) for each in causes]
    except (ValueError, KeyError, TypeError):
        return []


def _message(error: ApiException) -> str:
    """The sentence of the API server's Status, else the bare code; one line, of bounded length."""
    if "html" in (error.headers or {}).get("Content-Type", ""):
        return f"{error.status} {error.reason}, in a web page: a proxy wrote it"
    summary = error.summary() if isinstance(error, DynamicApiError) else error.reason
    sentence = " ".join(str(summary or "").split())
    return sentence[:_MESSAGE_LIMIT] or f"{error.status} {error.reason}"
