"""What the children and their pods show: how many run, when they began, what keeps them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from poolwise.plan.conditions import timestamp
from poolwise.plan.observed import Object
from poolwise.plan.reading import moment_of, true_condition
from poolwise.plan.records.running import ENDS
from poolwise.plan.status.groups import hung, outdated, partition
from poolwise.plan.status.problems import Problem, ordered, problems_of
from poolwise.plan.status.sets import counts, desired_pods, group_size, start_time
from poolwise.plan.status.span import Span, span


class HeldBack(NamedTuple):
    """An update that waits for somebody."""

    why: str
    """Who did what, as a clause."""
    remedy: str
    """The command that lets it go on."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The pods of one workload, as the child that runs them and the pods themselves tell."""

    exists: bool = False
    """Whether there is such a child."""
    desired: int = 0
    ready: int = 0
    replicas: int = 0
    """Pods that exist, ready or not."""
    succeeded: int = 0
    failed: int = 0
    start_time: str | None = None
    completion_time: str | None = None
    completed: str | None = None
    """The Job's own message once it has completed."""
    gave_up: str | None = None
    """The Job's own message once it has failed for good."""
    problems: tuple[Problem, ...] = ()
    end_time: datetime | None = None
    """When the Job was over, however it ended."""
    span: Span = field(default_factory=Span)
    """When its pods were on nodes."""
    groups: int | None = None
    """Replicas that exist, where each is a group of pods."""
    ready_groups: int | None = None
    outdated: int = 0
    """Pods that exist, and are yet to be replaced by ones of the newest template of what runs
    them."""
    held_back: HeldBack | None = None
    """Where somebody keeps such pods from being replaced."""
    lags: bool = False
    """Whether who makes the pods is yet to look at its newest spec: nothing is outdated before."""

    @property
    def start_moment(self) -> datetime | None:
        """``start_time`` as a moment."""
        return moment_of(self.start_time)

    @property
    def are_all_ready(self) -> bool:
        """Whether every pod that should run does, or is done."""
        return self.exists and self.ready + self.succeeded >= self.desired


class Live(NamedTuple):
    """What there is of one workload."""

    children: Sequence[Object]
    """Those of the workload alone; Events about them may be among them."""
    pods: Sequence[Object]


def observe(uid: str, children: Iterable[Object], pods: Sequence[Object]) -> Observation:
    """Everything that the workload with that uid shows.

    ``children`` may hold any objects that belong to it, its Events among them.
    """
    ours = [child for child in children if _is_ours(child, uid)]
    found = _of_first(ours, pods, problems_of(pods, ours))
    return replace(found, span=span(pods))


def with_hung(seen: Observation, live: Live, limit_seconds: float, now: datetime) -> Observation:
    """With groups of pods that do not start in time, where nobody else judges that."""
    groups = (each for each in live.children if each.get("kind") == "LeaderWorkerSet")
    found = [each for child in groups if (each := hung(child, live.pods, limit_seconds, now))]
    return replace(seen, problems=ordered([*seen.problems, *found])) if found else seen


def _of_first(
    children: Iterable[Object], pods: Sequence[Object], problems: tuple[Problem, ...]
) -> Observation:
    everything = list(children)
    for child in everything:
        match child.get("kind"):
            case "Job":
                return _of_job(child, problems)
            case "Deployment":
                return _of_deployments(everything, problems)
            case "JobSet" | "TrainJob":
                return _of_set(child, pods, problems)
            case "LeaderWorkerSet":
                return _of_groups(child, pods, problems)
    return Observation(problems=problems)


def _is_ours(child: Object, uid: str) -> bool:
    if child.get("kind") == "Event":
        return True
    owners = child["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def _of_job(job: Object, problems: tuple[Problem, ...]) -> Observation:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    return Observation(
        exists=True,
        desired=spec.get("completions") or spec.get("parallelism") or 0,
        ready=status.get("ready") or 0,
        replicas=status.get("active") or 0,
        succeeded=status.get("succeeded") or 0,
        failed=status.get("failed") or 0,
        start_time=status.get("startTime"),
        completion_time=status.get("completionTime"),
        completed=_message(status, "Complete"),
        gave_up=_message(status, "Failed"),
        problems=problems,
        end_time=_ended(status),
    )


def _of_deployments(children: Iterable[Object], problems: tuple[Problem, ...]) -> Observation:
    """A service has one for each pool that it is on."""
    found = [each for each in children if each.get("kind") == "Deployment"]
    states = [each.get("status") or {} for each in found]
    old = [each for each in found if outdated(each) and each["spec"].get("paused")]
    return Observation(
        exists=True,
        desired=sum((each.get("spec") or {}).get("replicas") or 0 for each in found),
        ready=sum(each.get("readyReplicas") or 0 for each in states),
        replicas=sum(each.get("replicas") or 0 for each in states),
        problems=problems,
        outdated=sum(map(outdated, found)),
        held_back=_paused(str(old[0]["metadata"]["name"])) if old else None,
        lags=any(map(_lags, found)),
    )


def _paused(deployment: str) -> HeldBack:
    return HeldBack(
        f"somebody paused Deployment {deployment}",
        f"kubectl rollout resume deployment/{deployment}",
    )


def _lags(child: Object) -> bool:
    looked_at = (child.get("status") or {}).get("observedGeneration")
    return looked_at is not None and looked_at < child["metadata"].get("generation", 0)


def _of_set(child: Object, pods: Sequence[Object], problems: tuple[Problem, ...]) -> Observation:
    """A JobSet or TrainJob: pods of an earlier attempt are gone before the next begins."""
    status = child.get("status") or {}
    completed = _message(status, "Completed") or _message(status, "Complete")
    ended, seen = _ended(status), counts(pods)
    return Observation(
        exists=True,
        desired=desired_pods(child),
        ready=seen.ready,
        replicas=seen.existing,
        succeeded=seen.succeeded,
        failed=seen.failed,
        start_time=start_time(pods),
        completion_time=timestamp(ended) if ended and completed is not None else None,
        completed=completed,
        gave_up=_message(status, "Failed"),
        problems=problems,
        end_time=ended,
    )


def _of_groups(child: Object, pods: Sequence[Object], problems: tuple[Problem, ...]) -> Observation:
    status, seen = child.get("status") or {}, counts(pods)
    return Observation(
        exists=True,
        desired=desired_pods(child),
        ready=seen.ready,
        replicas=seen.existing,
        problems=problems,
        groups=status.get("replicas") or 0,
        ready_groups=status.get("readyReplicas") or 0,
        outdated=outdated(child) * group_size(child),
        held_back=_partitioned(child),
        lags=_lags(child),
    )


def _partitioned(child: Object) -> HeldBack | None:
    """Of an update that is as far as its partition lets it."""
    first, name = partition(child), child["metadata"]["name"]
    if not 0 < outdated(child) <= first:
        return None
    off = '{"spec":{"rolloutStrategy":{"rollingUpdateConfiguration":{"partition":0}}}}'
    return HeldBack(
        f"somebody set partition {first} on LeaderWorkerSet {name}",
        f"kubectl patch leaderworkerset {name} --type=merge -p '{off}'",
    )


def _ended(status: Mapping[str, Any]) -> datetime | None:
    """When a run was over; only a Job that completed has a time of its own for it."""
    end = true_condition(status, *ENDS)
    own = moment_of(status.get("completionTime")) if end else None
    return own or moment_of(end.get("lastTransitionTime"))


def _message(status: Mapping[str, Any], type_: str) -> str | None:
    told = true_condition(status, type_)
    return ": ".join(filter(None, (told.get("reason"), told.get("message")))) if told else None
