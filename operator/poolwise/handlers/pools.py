"""AcceleratorPools as objects: discovered ones are made and removed, all get a status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from poolwise.cluster.cache import Cache, is_discovered
from poolwise.cluster.difference import covers, merge_patch
from poolwise.cluster.resources import ACCELERATOR_POOLS
from poolwise.cluster.writer import Writer
from poolwise.handlers.planner import Planner
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.pools.objects import pool_object, pool_status


class Pools:
    """Writes what the planner knows of pools."""

    def __init__(
        self, cache: Cache, writer: Writer, planner: Planner, now: Callable[[], datetime]
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._planner = planner
        self._now = now

    async def reconcile(self, name: str) -> None:
        """Make the AcceleratorPool ``name`` what the newest pass found."""
        decisions = self._planner.decisions
        pool = decisions.pools_by_name.get(name)
        live = self._cache.get(ACCELERATOR_POOLS, None, name)
        if live is not None and "deletionTimestamp" in live["metadata"]:
            return
        if pool is None:
            if live is not None and is_discovered(live):
                await self._writer.delete(live)
            return
        written = await self._written(pool, live)
        if written is not None:
            free, idle = decisions.free_accelerators.get(name), decisions.idle_nodes.get(name)
            await self._tell(written, pool, free, idle)

    async def _written(self, pool: Pool, live: Object | None) -> Object | None:
        """The object of a pool; that of a person is never touched, nor made again."""
        if not pool.is_discovered or (live is not None and not is_discovered(live)):
            return live
        wanted = pool_object(pool)
        if live is not None and covers(live, wanted):
            return live
        return await self._writer.apply(wanted)

    async def _tell(
        self, live: Object, pool: Pool, free: int | None, idle: tuple[str, ...] | None
    ) -> None:
        before = live.get("status") or {}
        changes = merge_patch(before, pool_status(live, pool, free, self._now(), idle))
        if changes:
            await self._writer.patch(live, {"status": changes}, "status")
