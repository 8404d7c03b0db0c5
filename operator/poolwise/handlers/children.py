"""The children of one workload: what is written, what is left alone, what is deleted."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from poolwise.cluster.cache import Cache
from poolwise.cluster.difference import covers, signed
from poolwise.cluster.resources import RUNNERS, RUNS, owner_uid, resource_of
from poolwise.cluster.store import name_of
from poolwise.cluster.writer import Writer, taken
from poolwise.errors import Conflict, Forbidden, NamespaceEnds, Refused
from poolwise.handlers.draining import Draining
from poolwise.handlers.seen import seen_of
from poolwise.plan.children.cleanup import cleanup
from poolwise.plan.children.manifests import changes_to_run, runner_names
from poolwise.plan.children.metadata import key_of, selector_labels
from poolwise.plan.history.lost_records import written_again
from poolwise.plan.kueue.child import is_superseded, moves
from poolwise.plan.observed import Object
from poolwise.plan.reading import is_true, mapping
from poolwise.plan.records.running import ENDS

_log = structlog.get_logger(__name__)


class Children:
    """Makes the live children of a workload what they should be."""

    def __init__(self, cache: Cache, writer: Writer, draining: Draining) -> None:
        self._cache = cache
        self._writer = writer
        self._draining = draining

    async def write(self, workload: Object, desired: tuple[Object, ...]) -> None:
        """Create or correct ``desired``, and delete what else the workload owns.

        :raises NameTaken: when somebody else's object has the name of one.
        """
        for child in desired:
            await self._write(workload, child)
        wanted = {(resource_of(child), name_of(child)) for child in desired}
        await self._delete(workload, lambda each: (resource_of(each), name_of(each)) in wanted)

    async def find(self, workload: Object) -> bool:
        """Look for what runs the workload's pods where none is known, and have it watched again;
        whether there is any. Watches tell of one that lost our label as of one that is gone."""
        uid, key = workload["metadata"]["uid"], key_of(workload)
        if any(resource_of(each) in RUNNERS for each in self._cache.children_of(uid)):
            return False
        called, labels = runner_names(key), selector_labels(key)
        for resource in self._cache.runners():
            name = called.get(resource.kind)
            if name and await self._writer.mark(resource, (key.namespace, name), uid, labels):
                _log.warning("labelled again: it could not be seen", what=f"{resource}/{name}")
                return True
        return False

    async def end_with_namespace(self, workload: Object) -> None:
        """Delete Jobs whose namespace is being deleted: pods go first there (Kubernetes 1.33), and
        are kept till others replace them, which none can any more: it would stay for ever. Those of
        a workload that is paused, too: who deletes a namespace wants all of it gone.

        Whether it is so, the answer to a Job without a spec tells, which is never made.
        """
        for live in self._cache.children_of(workload["metadata"]["uid"]):
            if "deletionTimestamp" in live["metadata"] or not self._holds_a_pod(workload, live):
                continue
            namespace, name = name_of(live)
            known = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
            try:
                metadata = {"name": name, "namespace": namespace}
                await self._writer.create({**known, "metadata": metadata})
            except NamespaceEnds:
                _log.info("deleted: its namespace waits for its pods", job=str(name_of(live)))
                await self._writer.delete(live)
            except (Conflict, Forbidden, Refused):
                continue

    async def resize(self, workload: Object, of: Callable[[Object], Object]) -> None:
        """Change of live children what ``of`` says (a merge patch each), and leave them otherwise
        as they are."""
        for live in self._cache.children_of(workload["metadata"]["uid"]):
            wanted = of(live)
            if "deletionTimestamp" in live["metadata"] or covers(live, wanted):
                continue
            await self._draining.before(workload, live, {**live, "spec": wanted["spec"]})
            await self._writer.patch(live, wanted)

    async def set_cleanup(self, job: Object) -> None:
        """Have what ran a job that is over deleted when its spec says, and nothing before."""
        for live in self._cache.children_of(job["metadata"]["uid"]):
            changes = cleanup(job, live)
            if changes and "deletionTimestamp" not in live["metadata"]:
                await self._writer.patch(live, changes)

    async def clear(self, workload: Object) -> None:
        """Delete all that the workload owns, but for a run that has ended: that is history."""
        await self._delete(workload, is_finished)

    async def _write(self, workload: Object, child: Object) -> None:
        resource = resource_of(child)
        live = self._cache.get(resource, *name_of(child))
        if live is None:
            await self._writer.apply(child)
        elif owner_uid(live) != workload["metadata"]["uid"]:
            raise taken(live, child)
        elif "deletionTimestamp" in live["metadata"]:
            return  # its end is an event, and then it is written anew
        elif is_superseded(live, child):
            await self._writer.replace(live, child)
        elif resource in RUNS:
            await self._correct_run(workload, live, child)
        elif not covers(live, child):
            await self._draining.before(workload, live, child)
            await self._writer.apply(child)

    async def _correct_run(self, workload: Object, live: Object, child: Object) -> None:
        """The pods of a run cannot be changed, but for where they go while they wait in a queue; a
        few limits can, and the record of a run is put back where it got lost."""
        way = moves(live, child)
        if way:
            live = await self._writer.patch(live, way)
        wanted = changes_to_run(workload, live["kind"])["spec"]
        spec = {field: value for field, value in wanted.items() if live["spec"].get(field) != value}
        changes = written_again(live, child, key_of(workload)) | ({"spec": spec} if spec else {})
        if changes:
            await self._writer.patch(live, changes)

    def _holds_a_pod(self, workload: Object, job: Object) -> bool:
        """Whether a pod that was deleted has failed of it and may be kept till another replaces it:
        so Kubernetes does for Jobs that count failures by index."""
        return "backoffLimitPerIndex" in (job.get("spec") or {}) and any(
            "deletionTimestamp" in pod["metadata"]
            and (pod.get("status") or {}).get("phase") == "Failed"
            for pod in seen_of(self._cache, workload).pods
        )

    async def _delete(self, workload: Object, is_kept: Callable[[Object], bool]) -> None:
        for child in self._cache.children_of(workload["metadata"]["uid"]):
            if not is_kept(child) and "deletionTimestamp" not in child["metadata"]:
                await self._writer.delete(child)


def prepared(child: Object) -> Object:
    """A manifest as it is applied: signed, where it may be applied again."""
    return child if resource_of(child) in RUNS else signed(child)


def is_finished(child: Object) -> bool:
    """Whether this is a run that has ended."""
    return is_true(mapping(child, "status"), *ENDS)
