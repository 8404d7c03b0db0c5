"""Before a Deployment gets fewer replicas: which of them end."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from poolwise.cluster.cache import Cache
from poolwise.cluster.writer import Writer
from poolwise.errors import ClusterError
from poolwise.handlers.seen import is_of_any, seen_of
from poolwise.plan.live.leaving import DELETION_COST, deletion_costs
from poolwise.plan.observed import Object
from poolwise.plan.signals.sample import Sample

_log = structlog.get_logger(__name__)


class Draining:
    """Writes deletion costs on the pods of services; ``samples`` is the newest look at each, by
    uid."""

    def __init__(self, cache: Cache, writer: Writer, samples: Mapping[str, Sample]) -> None:
        self._cache = cache
        self._writer = writer
        self._samples = samples

    async def before(self, workload: Object, live: Object, child: Object) -> None:
        """Mark who leaves, where the child is about to get fewer replicas than it has.

        That it cannot be written is no reason to keep what nobody needs: Kubernetes then chooses.
        """
        if child["kind"] != "Deployment":
            return
        leaving = (live["spec"].get("replicas") or 0) - child["spec"]["replicas"]
        if leaving <= 0:
            return
        pods = [pod for pod in seen_of(self._cache, workload).pods if is_of_any(pod, [live])]
        for pod, cost in deletion_costs(pods, self._samples, leaving):
            changes = {"metadata": {"annotations": {DELETION_COST: cost}}}
            try:
                await self._writer.patch(pod, changes)
            except ClusterError as error:
                _log.info("not marked", pod=pod["metadata"]["name"], problem=str(error))
