"""``/healthz`` and ``/readyz``, from the first moment on: kopf would serve one path, and only once
it has started. Neither asks the API server anything."""

from __future__ import annotations

from aiohttp import web

from poolwise.cluster.freshness import Freshness
from poolwise.cluster.listen import address_and_port, cannot_listen
from poolwise.cluster.readiness import Readiness

_SHUTDOWN_SECONDS = 1.0


class HealthServer:
    """Answers the probes of a kubelet on one port."""

    def __init__(
        self, listen: str, freshness: Freshness, readiness: Readiness, stale_seconds: float
    ) -> None:
        self._listen = listen
        self._freshness = freshness
        self._readiness = readiness
        self._stale_seconds = stale_seconds
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        self._runner = web.AppRunner(application, shutdown_timeout=_SHUTDOWN_SECONDS)

    async def start(self) -> None:
        """Listen; nothing happens when there is no address.

        :raises InvalidInput: when the address is in use, or not ours.
        """
        if not self._listen:
            return
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, *address_and_port(self._listen)).start()
        except OSError as error:
            raise cannot_listen("liveness_listen", self._listen, error) from error

    async def close(self) -> None:
        """Stop answering."""
        await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """Whether the process should be left alone: what waits for others is not cured by a new
        one, but a watch that hangs is."""
        if hung := self._freshness.hung(self._stale_seconds):
            return _line(500, f"watches that receive nothing: {', '.join(hung)}")
        ages = self._freshness.ages_seconds()
        return web.json_response({"watches": round(max(ages.values(), default=0.0), 1)})

    async def _readyz(self, _: web.Request) -> web.Response:
        problem = self._readiness.problem
        return _line(503, problem) if problem else _line(200, "ok")


def _line(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{' '.join(text.split())}\n")
