"""Why this process cannot do its work, in one line: ``/readyz`` says it, and the log says it once.

What is named here cures itself or is cured from outside, so that the process waits instead of
ending: kinds that are not installed, rights that are missing, an API server that does not answer.
"""

from __future__ import annotations

import structlog

from poolwise.cluster.resources import Resource
from poolwise.errors import (
    ClusterError,
    Forbidden,
    NotFound,
    Unauthorized,
    Unavailable,
    Unreachable,
    Untrusted,
)
from poolwise.plan.names import GROUP

_log = structlog.get_logger(__name__)

WAITS_FOR = (Forbidden, NotFound, Unavailable)
"""Errors of a list that somebody cures while we wait."""

_STARTING = "starting: the cluster has not been read yet"
_SERVER = "API server"


class Readiness:
    """What stands in the way; several things may at once, each known by a name of ours."""

    def __init__(self) -> None:
        self.server = "(address unknown)"
        """Address of the API server, for what is said of it."""
        self.waits_for_server = False
        """Whether it does not answer, or not yet: so it would not answer a new process."""
        self._is_filled = False
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str | None:
        """The first thing in the way; None: this process does its work, or could as a standby."""
        problems = {_SERVER: None, **self._problems}  # without the server nothing else matters
        first = next((each for each in problems.values() if each), None)
        return first or (None if self._is_filled else _STARTING)

    def filled(self) -> None:
        """All kinds were read in full, those of optional APIs too."""
        self._is_filled = True

    def blocked(self, what: str, problem: str) -> None:
        """The API server answers, but ``what`` does not work: ``problem`` says why in one line."""
        self._answers()
        self._note(what, problem)

    def solved(self, what: str) -> None:
        """``what`` works."""
        problem = self._problems.pop(what, None)
        if problem is not None:
            _log.info("works again", problem=problem)

    def forbidden(self, what: str, error: Forbidden) -> None:
        """Our service account may not do something."""
        self.blocked(what, f"{error}; the chart's roles give this right (files/rights.yaml)")

    def refused(self, what: str, resource: Resource, error: ClusterError) -> None:
        """The API server did not let us read ``resource``, or did not answer at all."""
        if isinstance(error, Unavailable):
            return self.unavailable(error)
        if isinstance(error, Forbidden):
            return self.forbidden(what, error)
        self.blocked(what, missing(resource) if isinstance(error, NotFound) else str(error))

    def unavailable(self, error: Unavailable) -> None:
        """The API server did not answer, or not to us."""
        self.waits_for_server = not isinstance(error, Unauthorized | Untrusted)
        self._note(_SERVER, silence(self.server, error))

    def answered(self, what: str) -> None:
        """The API server let us read."""
        self._answers()
        self.solved(what)

    def _note(self, what: str, problem: str) -> None:
        if self._problems.get(what) != problem:
            _log.warning("not ready", problem=problem)
        self._problems[what] = problem

    def _answers(self) -> None:
        self.waits_for_server = False
        self.solved(_SERVER)


def silence(server: str, error: Unavailable) -> str:
    """What there is instead of an answer."""
    match error:
        case Untrusted():
            state = "shows no certificate that is trusted"
        case Unreachable():
            state = "does not answer"
        case Unauthorized():
            state = "does not accept our credentials"
        case _:
            state = "is not ready"
    return f"the API server {server} {state}: {error}"


def missing(resource: Resource) -> str:
    """What to install where the API server does not serve it."""
    if resource.group == GROUP:
        return (
            f"CRD {resource} is not installed: helm upgrade with crds.install=true, "
            "or kubectl apply --server-side -f crds/"
        )
    return f"the API server does not know {resource}: Poolwise needs Kubernetes 1.34 or newer"
