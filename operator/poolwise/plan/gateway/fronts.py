"""Which InferencePool stands before a service: the one that takes all of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poolwise.plan import names
from poolwise.plan.children.metadata import WORKER_INDEX, serving_labels
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key
from poolwise.plan.gateway.pools import InferencePool

Labels = Mapping[str, str]
_WHERE = (names.POOL, WORKER_INDEX)


@dataclass(frozen=True, slots=True)
class Front:
    """What is known of it from objects alone."""

    pool: InferencePool | None
    """Whose gateway routes to the service; None: no one, or nobody can tell which."""
    reason: Reason | None = None
    """Why it holds nothing whatever its endpoint picker tells; None: that is for it to tell."""
    problem: str = ""
    """The same as a clause."""

    def takes_all(self, every: Iterable[Labels]) -> bool:
        """Whether all these pods are its endpoints."""
        return self.pool is not None and all(map(self.pool.takes, every))


def pod_labels(key: Key, pool: str, spans_nodes: bool) -> dict[str, str]:
    """Of the pods that answer requests of a service on one AcceleratorPool, be there any or not."""
    return {**serving_labels(key, spans_nodes), names.POOL: names.pool_label(pool)}


def front(
    key: Key, pods: Sequence[Labels], pools: Iterable[InferencePool], others: Iterable[Labels] = ()
) -> Front:
    """What stands before a service.

    :param pods: labels of its pods, of each AcceleratorPool that it runs on.
    :param pools: of its namespace.
    :param others: labels of the pods of other services there, on whatever pool.
    """
    near = [each for each in pools if any(map(each.takes, pods))]
    if not near:
        wanted = f"{names.OWNER_NAME}: {pods[0][names.OWNER_NAME]}" if pods else ""
        told = f"no InferencePool of namespace {key.namespace} takes its pods ({wanted})"
        return Front(None, Reason.NOTHING_HOLDS_REQUESTS, told)
    if len(near) > 1:
        told = ", ".join(sorted(each.name for each in near))
        return Front(None, Reason.SEVERAL_INFERENCE_POOLS, f"InferencePools {told} take its pods")
    (pool,) = near
    if not all(map(pool.takes, pods)):
        told = f"InferencePool {pool.name} takes the pods of some of its AcceleratorPools alone"
        return Front(None, Reason.NOTHING_HOLDS_REQUESTS, told)
    if any(_may_take(pool, each) for each in others):
        told = f"InferencePool {pool.name} takes pods of other services too"
        return Front(pool, Reason.SHARED_INFERENCE_POOL, told)
    if pool.problem:
        told = f"InferencePool {pool.name} cannot be asked: {pool.problem}"
        return Front(pool, Reason.NO_ENDPOINT_PICKER, told)
    return Front(pool)


def _may_take(pool: InferencePool, labels: Labels) -> bool:
    """Whether it takes pods with these labels and any of those that tell where they run."""
    return all(
        labels.get(name) == value for name, value in pool.selector.items() if name not in _WHERE
    )
