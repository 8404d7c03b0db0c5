"""What may happen in a history, each as a value that reads as what it does."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from poolwise.cluster.resources import (
    CHILDREN,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    TRAINING_JOBS,
)
from poolwise.errors import ClusterError, Conflict, Forbidden, NameTaken, Refused, Unavailable
from poolwise.plan.decision import Kind
from poolwise.plan.names import (
    INFERENCE,
    KUEUE,
    MANAGED_BY,
    PAUSED,
    PLACEMENT,
    TRAINER,
)
from poolwise.plan.status.workload import is_paused
from tests.fake_kube import Document
from tests.handlers.histories import documents as given
from tests.handlers.histories.world import World
from tests.plan.children.set_cases import runtime


@dataclass(frozen=True)
class Event:
    """Calls the function of that name below."""

    name: str
    of: tuple[Any, ...] = field(default=())

    async def happen(self, world: World) -> None:
        """Do it."""
        if self.name in _OF_PROCESSES:
            await _OF_PROCESSES[self.name](world, *self.of)
        else:
            _EVENTS[self.name](world, *self.of)

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {self.of!r})"


History = list[tuple[Event, float]]
"""With the seconds that pass after each."""


def _pick(found: Sequence[Document], index: int) -> Document | None:
    """One of what there is."""
    return found[index % len(found)] if found else None


def create_job(world: World, name: str, spec: dict[str, Any]) -> None:
    if world.find("TrainingJob", name) is None:
        world.apply(given.job(name, spec))


def edit_job(world: World, index: int, spec: dict[str, Any]) -> None:
    if live := _pick(world.cluster.all(TRAINING_JOBS), index):
        world.apply({**live, "spec": {**live["spec"], **spec}})


def create_service(world: World, name: str, spec: dict[str, Any]) -> None:
    """Or edit it."""
    live = world.find("InferenceService", name)
    document = given.service(name, spec)
    world.apply(document if live is None else {**live, "spec": document["spec"]})


def delete(world: World, kind: str, name: str) -> None:
    live = world.find(kind, name)
    if live is not None:
        world.cluster.vanish(live)


def recreate(world: World, kind: str, name: str, spec: dict[str, Any]) -> None:
    """Delete it, and make another one of its name at once."""
    delete(world, kind, name)
    world.apply((given.job if kind == "TrainingJob" else given.service)(name, spec))


def pause(world: World, index: int, shall_pause: bool) -> None:
    if live := _pick(world.workloads(), index):
        if shall_pause and not is_paused(live):
            world.paused_at[live["metadata"]["uid"]] = world.loop.time()
        notes = {**(live["metadata"].get("annotations") or {}), PAUSED: str(shall_pause).lower()}
        world.cluster.change(live, metadata={**live["metadata"], "annotations": notes})


def end_workload(world: World, index: int) -> None:
    """Delete one."""
    if live := _pick(world.workloads(), index):
        world.cluster.vanish(live)


def remove_node(world: World, index: int) -> None:
    if live := _pick(world.nodes(), index):
        world.cluster.vanish(live)


def add_node(world: World, name: str) -> None:
    if world.find("Node", name) is None:
        world.cluster.put(given.node(name))


def cordon(world: World, index: int, is_cordoned: bool) -> None:
    if live := _pick(world.nodes(), index):
        world.cluster.change(live, spec={**live.get("spec", {}), "unschedulable": is_cordoned})


def break_node(world: World, index: int, how: str) -> None:
    """Its labels go or change, its devices fail, it is not ready or tainted; or all is well."""
    live = _pick(world.nodes(), index)
    if live is None:
        return
    node = copy.deepcopy(given.node(live["metadata"]["name"]))
    if how == "bare":
        node["metadata"]["labels"] = {}
    elif how == "other product":
        node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-L40S"
    elif how == "fewer devices":
        node["status"]["allocatable"] = {**node["status"]["allocatable"], given.GPU: "3"}
    elif how == "not ready":
        node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    spec = {**(live.get("spec") or {}), "taints": [given.TAINT] if how == "tainted" else []}
    metadata = {**live["metadata"], "labels": node["metadata"]["labels"]}
    world.cluster.change(live, status=node["status"], spec=spec, metadata=metadata)


def declare_pool(world: World, name: str, spec: dict[str, Any]) -> None:
    world.apply(given.declared_pool(name, **spec))


def end_run(world: World, index: int, phase: str) -> None:
    """All pods of a run end so."""
    run = _pick(world.cluster.all(TRAINING_JOBS), index)
    name = run["metadata"]["name"] if run else "nothing"
    for pod in world.pods():
        if pod["metadata"]["name"].startswith(name) and pod["status"]["phase"] == "Running":
            world.cluster.change(pod, status={**pod["status"], "phase": phase})


def evict_pod(world: World, index: int) -> None:
    if pods := [each for each in world.pods() if "ownerReferences" in each["metadata"]]:
        world.cluster.terminate(pods[index % len(pods)])


def unready_pod(world: World, index: int) -> None:
    if pods := [each for each in world.pods() if each["status"]["phase"] == "Running"]:
        world.controllers.set_ready(pods[index % len(pods)], False)


def foreign_pod(world: World, index: int, accelerators: int) -> None:
    """0: it ends."""
    node = _pick(world.nodes(), index)
    if node is None:
        return
    on = node["metadata"]["name"]
    live = world.find("Pod", f"other-{on}")
    if live is not None:
        world.cluster.vanish(live)
    if accelerators:
        world.cluster.put(given.foreign_pod(f"other-{on}", on, accelerators))


def _children(world: World) -> list[Document]:
    """What the operator made itself: Jobs of a JobSet are its controller's."""
    found = [each for resource in CHILDREN for each in world.cluster.all(resource)]
    return [each for each in found if _is_made_by_us(each["metadata"])]


def _is_made_by_us(metadata: Document) -> bool:
    owners = metadata.get("ownerReferences") or []
    is_labelled = MANAGED_BY in (metadata.get("labels") or {})
    return is_labelled and any(each["kind"] in set(Kind) for each in owners)


def delete_child(world: World, index: int) -> None:
    if children := _children(world):
        world.cluster.vanish(children[index % len(children)])


def damage_child(world: World, index: int, how: str) -> None:
    """Its record goes or is nonsense, or its labels go."""
    if not (children := _children(world)):
        return
    child = children[index % len(children)]
    metadata = copy.deepcopy(child["metadata"])
    if how == "labels":
        metadata["labels"] = {}
    else:
        metadata["annotations"] = {} if how == "record" else {PLACEMENT: how}
    world.cluster.change(child, metadata=metadata)


def scale_child(world: World, index: int, replicas: int) -> None:
    found = [*world.cluster.all(DEPLOYMENTS), *world.cluster.all(LEADER_WORKER_SETS)]
    if found:
        child = found[index % len(found)]
        world.cluster.change(child, spec={**child["spec"], "replicas": replicas})


def take_name(world: World, name: str, kind: str) -> None:
    """Somebody else has the name, or no longer."""
    live = world.find(kind, name)
    if live is None:
        world.cluster.put(given.foreign(name, kind))
    elif MANAGED_BY not in (live["metadata"].get("labels") or {}):
        world.cluster.vanish(live)


def autoscale(world: World, service: str, kind: str) -> None:
    """Somebody else does, or no longer."""
    live = world.find("HorizontalPodAutoscaler", f"theirs-{service}")
    if live is None:
        world.cluster.put(given.autoscaler(kind, service))
    else:
        world.cluster.vanish(live)


def kueue(world: World, how: str) -> None:
    if how == "remove":
        if KUEUE in world.cluster.optional:
            world.cluster.remove_api(KUEUE)
    elif KUEUE not in world.cluster.optional:
        world.kueue.install(with_check=how == "with check")


def evict_from_queue(world: World, index: int) -> None:
    world.kueue.evict(index)


def api(world: World, group: str, is_served: bool) -> None:
    if is_served:
        world.cluster.serve(group)
        if group == TRAINER:
            world.cluster.put(runtime())
    elif group in world.cluster.optional:
        world.cluster.remove_api(group)


def gateway(world: World, service: str) -> None:
    """Put one before a service, or take it away."""
    world.cluster.serve(INFERENCE)
    pool = world.find("InferencePool", service)
    if pool is not None:
        world.cluster.vanish(pool)
        return
    for document in given.gateway(service):
        if world.find(document["kind"], document["metadata"]["name"]) is None:
            world.cluster.put(document)


def hold_requests(world: World, count: float) -> None:
    world.told.held_requests = count


def tell(world: World, state: str) -> None:
    """What all replicas tell from now on."""
    world.told.tell(state)


def tell_of(world: World, service: str, state: str) -> None:
    """What replicas of one service tell from now on."""
    world.told.states[service] = state


def lag(world: World, plural: str, seconds: float) -> None:
    world.cluster.lag_seconds[plural] = seconds


ERRORS: dict[str, Callable[[], ClusterError]] = {
    "409": lambda: Conflict("409"),
    "429": lambda: Unavailable("429", 2.0),
    "500": lambda: Unavailable("500"),
    "403": lambda: Forbidden("403"),
    "422": lambda: Refused("422"),
    "taken": lambda: NameTaken("taken"),
}


def fail_writes(world: World, error: str, count: int) -> None:
    world.cluster.failures = [ERRORS[error]() for _ in range(count)]


def refuse(world: World, what: str, is_refused: bool) -> None:
    """A policy refuses some writes, for as long as it is there."""
    if is_refused:
        world.cluster.unwanted[what] = Refused(f"{what} is against a policy")
    else:
        world.cluster.unwanted.pop(what, None)


def write_slowly(world: World, seconds: float) -> None:
    world.cluster.write_seconds = seconds


def bring_nodes(world: World, group: str) -> None:
    """An autoscaler may, or no longer."""
    world.autoscaler.group = group


def start_slowly(world: World, seconds: float) -> None:
    world.controllers.start_seconds = seconds


def schedule(world: World, is_scheduling: bool) -> None:
    world.controllers.is_scheduling = is_scheduling


async def restart(world: World, carries_out: bool = False) -> None:
    """Another process takes over; ``carries_out``: writes on their way arrive even so."""
    await world.step_down(carries_out)
    await world.restart()


async def step_down(world: World, carries_out: bool) -> None:
    """Nobody leads, until the next restart."""
    await world.step_down(carries_out)


_OF_PROCESSES: dict[str, Callable[..., Awaitable[None]]] = {
    each.__name__: each for each in (restart, step_down)
}
_EVENTS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        *(create_job, edit_job, create_service, delete, end_workload, recreate, pause),
        *(remove_node, add_node, cordon, break_node, declare_pool),
        *(end_run, evict_pod, unready_pod, foreign_pod),
        *(delete_child, damage_child, scale_child, take_name),
        *(autoscale, kueue, evict_from_queue, api, gateway, hold_requests),
        *(tell, tell_of, lag, fail_writes, refuse, write_slowly),
        *(bring_nodes, start_slowly, schedule),
    )
}
