"""What holds from one planning pass of a process to its next."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from poolwise.cluster.resources import RUNNERS, WATCHED, owner_uid
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Outcome, Plan
from poolwise.plan.observed import Decisions, Object, Observed
from poolwise.plan.status.workload import is_paused
from tests.fake_kube import _matches
from tests.handlers.histories.cluster import Cluster
from tests.handlers.histories.promises import overpromised


class Passes:
    """Sees each pass of one process, and the cluster as it is at that moment."""

    def __init__(self, cluster: Cluster, broken: list[str]) -> None:
        self._cluster = cluster
        self.broken = broken
        self._before = Decisions((), {})
        self._attempts_before = 0
        self._apis_before: Collection[str] = ()

    def see(self, observed: Observed, decisions: Decisions) -> None:
        """Add to ``broken`` what is wrong."""
        self.broken += overpromised(observed, decisions)
        self.broken += _forgotten(observed, decisions)
        self.broken += self._unseen(observed)
        self.broken += self._decided_twice(observed, decisions)
        self._before = decisions
        self._attempts_before = len(self._cluster.attempts)
        self._apis_before = observed.apis

    def _unseen(self, observed: Observed) -> Iterator[str]:
        """Who writes knows it at once, whenever the watch tells of it."""
        known = {each["metadata"].get("uid") for each in observed.children}
        for resource in RUNNERS:
            for child in self._cluster.all(resource):
                uid = child["metadata"]["uid"]
                is_read = resource in WATCHED or resource.group in observed.apis
                is_ours = uid in self._cluster.made and _matches(resource, child)
                if is_ours and is_read and uid not in known:
                    yield f"wrote {resource.plural}/{child['metadata']['name']}, and forgot it"

    def _decided_twice(self, observed: Observed, decisions: Decisions) -> Iterator[str]:
        """A place that was given counts from then on, before it is written; but for who is to wait
        in a queue of Kueue's, which was just found to be there."""
        if observed.apis != self._apis_before:
            return
        running = {owner_uid(each) for kind in RUNNERS for each in self._cluster.all(kind)}
        tried = self._cluster.attempts[self._attempts_before :]
        asked = {key_of(each): each for each in _workloads(observed)}
        for key, plan in self._before.outcomes.items():
            is_new = isinstance(plan, Plan) and plan.placed and not plan.kept and not plan.queue
            if not is_new or key not in asked or is_paused(asked[key]) or plan.uid in running:
                continue
            is_tried = any(write.endswith(f"/{key.name}") for write in tried)
            if not is_tried and _is_anew(plan, decisions.outcomes.get(key)):
                yield f"{key} was given a place, and is planned again before it is written"


def _forgotten(observed: Observed, decisions: Decisions) -> Iterator[str]:
    for workload in _workloads(observed):
        key = key_of(workload)
        outcome = decisions.outcomes.get(key)
        is_ending = "deletionTimestamp" in workload["metadata"]
        if not is_ending and (outcome is None or outcome.uid != workload["metadata"]["uid"]):
            yield f"nothing is decided for {key}"


def _is_anew(before: Outcome, now: Outcome | None) -> bool:
    """Whether the same spec is planned again."""
    if now is None or (now.uid, now.generation) != (before.uid, before.generation):
        return False
    return not (isinstance(now, Plan) and now.kept)


def _workloads(observed: Observed) -> Iterator[Object]:
    yield from observed.training_jobs
    yield from observed.inference_services
