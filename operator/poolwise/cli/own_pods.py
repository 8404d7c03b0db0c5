"""Running pods of Poolwise's own workloads, told to ``poolwise plan`` without what runs them.

The pods of a workload that is planned hold what it is planned for: taken as others', a workload
that runs would wait for itself. It is planned anew, as if it did not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity_pods import node_held_by, owner_labels, owner_of
from poolwise.plan.observed import Object
from poolwise.plan.wording import first_of, plural

NAMED_AT_MOST = 3
"""Workloads that one sentence names."""


def without_planned(pods: Iterable[Object], workloads: Iterable[Mapping[str, Any]]) -> list[Object]:
    """The pods that hold nodes beside the workloads that are planned."""
    planned = {_owner_labels(each) for each in workloads}
    return [pod for pod in pods if owner_of(pod) not in planned]


def unplanned(pods: Iterable[Object]) -> Iterator[str]:
    """A sentence where Poolwise placed some of the pods, for workloads that no file names: they
    may be moved or stopped in the cluster, and are not here."""
    placed = [owner for pod in pods if node_held_by(pod) and (owner := owner_of(pod))]
    if placed:
        names = sorted({f"{kind} {namespace}/{name}" for kind, namespace, name in placed})
        yield (
            f"{plural(len(placed), 'pod')} of --pods that Poolwise placed count as they stand,"
            f" since no -f names their workloads: {first_of(names, NAMED_AT_MOST)}"
        )


def _owner_labels(workload: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = workload["metadata"]
    return owner_labels(Key(Kind(workload["kind"]), metadata["namespace"], metadata["name"]))
