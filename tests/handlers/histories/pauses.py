"""Whether anything is written of what is paused."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.cluster.resources import CHILDREN, owner_uid
from poolwise.plan.status.workload import is_paused
from tests.handlers.histories.world import World

SEEN_SECONDS = 100.0
"""By then a pause is seen, however late watches tell, and the writes that had begun are made."""


def written(world: World) -> Iterator[str]:
    """Children that the operator wrote or deleted since."""
    paused = [each["metadata"]["uid"] for each in world.workloads() if is_paused(each)]
    for resource in CHILDREN:
        for child in world.cluster.all(resource):
            name, owner = f"{resource.plural}/{child['metadata']['name']}", owner_uid(child)
            if owner is not None and owner in paused:
                seen_at = world.paused_at[owner] + SEEN_SECONDS
                for at, write in world.cluster.operator_writes:
                    if at > seen_at and write.endswith(f" {name}"):
                        yield f"{write}: its owner is paused"
