"""Whether the API server answers, and still lets us read: asked all the time, one object at most.

A watch that was opened lives on for up to an hour after its right was taken away, so that the
watches alone tell too late.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from poolwise.cluster import clock
from poolwise.cluster.kube import Kube
from poolwise.cluster.listing import targets
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import Resource
from poolwise.errors import ClusterError, Unavailable
from poolwise.settings import Settings

_SILENCE_SECONDS = 15.0
"""Without an answer for so long, the API server is said not to answer: a restart takes less."""


class Pulse:
    """Asks for one kind after another, and again for those that were refused."""

    def __init__(
        self,
        kube: Kube,
        readiness: Readiness,
        settings: Settings,
        monotonic_seconds: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._readiness = readiness
        self._targets = targets(settings)
        self._pause_seconds = settings.pulse_seconds
        self._monotonic_seconds = monotonic_seconds
        self._answered_at = monotonic_seconds()
        self._refused: set[tuple[Resource, str | None]] = set()

    async def run(self) -> None:
        """Ask for ever."""
        for target in itertools.cycle(self._targets):
            for each in {*self._refused, target}:
                await self.check(*each)
            await asyncio.sleep(self._pause_seconds * clock.jitter())

    async def check(self, resource: Resource, namespace: str | None) -> None:
        """Ask for one kind."""
        what = resource.path(namespace)
        try:
            await self._kube.peek(resource, namespace)
        except Unavailable as error:
            if self._monotonic_seconds() - self._answered_at >= _SILENCE_SECONDS:
                self._readiness.refused(what, resource, error)
            return
        except ClusterError as error:
            self._refused.add((resource, namespace))
            self._readiness.refused(what, resource, error)
        else:
            self._refused.discard((resource, namespace))
            self._readiness.answered(what)
        self._answered_at = self._monotonic_seconds()
