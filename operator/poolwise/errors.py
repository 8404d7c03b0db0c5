"""Every error that Poolwise raises on purpose.

PoolwiseError
├── InvalidInput        what a person wrote cannot be used; says what, where, value, allowed
├── TableError          a table that ships with Poolwise is malformed
├── NotPlanned          a workload has no plan after the time that somebody would wait
└── ClusterError        the API server refused or could not be reached
    ├── Conflict        somebody else changed the object first; read again and retry
    ├── Forbidden       our service account lacks a verb; names verb and resource
    ├── NameTaken       an object of somebody else has the name of a child of ours
    │   └── NameEnds        and is being deleted
    ├── NotFound        no such object, kind or namespace
    ├── Refused         what we sent is not acceptable to the API server, now or later
    │   └── NamespaceEnds   nothing is created any more in a namespace that is being deleted
    └── Unavailable     no answer, or an answer that asks to come back later
        ├── NotLeading      we may not write just now: the Lease was not renewed in time
        ├── Unauthorized    it does not know who we are; tokens are renewed
        └── Unreachable     no answer at all
            └── Untrusted   who listens there has a certificate of whom we do not know
"""

from __future__ import annotations


class PoolwiseError(Exception):
    """Base of all errors below."""


class InvalidInput(PoolwiseError):
    """One thing a person wrote that cannot be used.

    ``where`` names file, document, object or field as precisely as known; ``problem`` is one
    sentence with the value found and what is allowed.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where
        self.problem = problem


class TableError(PoolwiseError):
    """A row of a shipped table has an unknown key, a missing figure or an impossible one."""


class NotPlanned(PoolwiseError):
    """A workload has no plan after the time that somebody would wait."""


class ClusterError(PoolwiseError):
    """The API server refused a request or did not answer."""


class Conflict(ClusterError):
    """The object changed since it was read (HTTP 409)."""


class Forbidden(ClusterError):
    """The service account lacks a verb (HTTP 403)."""


class NameTaken(ClusterError):
    """An object of somebody else has the name that a child of ours would get."""


class NameEnds(NameTaken):
    """It is being deleted, and the name is free once it is gone."""


class NotFound(ClusterError):
    """No such object, kind or namespace (HTTP 404)."""


class Refused(ClusterError):
    """The API server will not have what we sent (HTTP 400, 413, 422): no use in a quick retry."""


class NamespaceEnds(Refused):
    """The namespace is being deleted, and what is in it goes soon: nothing is wrong."""


class Unavailable(ClusterError):
    """No answer, 429 or 5xx: worth a retry, after ``retry_after_seconds`` if the server said so."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotLeading(Unavailable):
    """The Lease was not renewed in time, and no write may begin: soon it is renewed, or we end."""


class Unauthorized(Unavailable):
    """The API server does not accept our credentials (HTTP 401)."""


class Unreachable(Unavailable):
    """No answer came at all."""


class Untrusted(Unreachable):
    """TLS fails: authorities that are trusted are read once, as the process starts."""
