"""What the children and their pods show: how many run, when they began, and what keeps them back.

Messages of kubelet and API server are quoted where they name the object at fault (a missing
Secret, a quota), and put in our words where they carry counters that would change by the minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import Reason, timestamp
from poolwise.plan.observed import Object
from poolwise.plan.status.meter import moment_of
from poolwise.plan.status.sets import counts, desired_pods, start_time
from poolwise.plan.status.span import Span, span
from poolwise.plan.wording import sentence

ENDS = ("Complete", "Completed", "Failed")
"""Conditions of a Job, JobSet or TrainJob that is over."""
PROBLEM_LIMIT = 8
"""Distinct problems that a status tells; the rest has the same causes."""

_IMAGE = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
}
_CONFIGURATION = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
_SEVERITY = [
    Reason.QUOTA_EXCEEDED,
    Reason.POD_SECURITY_REFUSED,
    Reason.CREATE_FAILED,
    Reason.MISSING_REFERENCE,
    Reason.IMAGE_PULL_FAILED,
    Reason.CONTAINER_CONFIG_FAILED,
    Reason.OUT_OF_MEMORY,
    Reason.CRASH_LOOP,
    Reason.CONTAINER_FAILED,
    Reason.POD_REJECTED,
    Reason.PROGRESS_DEADLINE_EXCEEDED,
    Reason.UNSCHEDULABLE,
]
"""Causes before their consequences."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps pods from running."""

    reason: Reason
    message: str
    pods: int = 0
    """How many show it; 0 where it is the controller that reports it."""


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

    @property
    def start_moment(self) -> datetime | None:
        """``start_time`` as a moment."""
        return moment_of(self.start_time)

    @property
    def are_all_ready(self) -> bool:
        """Whether every pod that should run does, or is done."""
        return self.exists and self.ready + self.succeeded >= self.desired


def observe(uid: str, children: Iterable[Object], pods: Sequence[Object]) -> Observation:
    """Everything that the workload with that uid shows.

    ``children`` may hold any objects that belong to it, its Events among them.
    """
    ours = [child for child in children if _is_ours(child, uid)]
    problems = tuple(_grouped([*_of_pods(pods), *_of_children(ours)]))
    return replace(_of_first(ours, pods, problems), span=span(pods))


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
    return Observation(
        exists=True,
        desired=sum((each.get("spec") or {}).get("replicas") or 0 for each in found),
        ready=sum(each.get("readyReplicas") or 0 for each in states),
        replicas=sum(each.get("replicas") or 0 for each in states),
        problems=problems,
    )


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
    )


def _ended(status: Mapping[str, Any]) -> datetime | None:
    """When a run was over; only a Job that completed has a time of its own for it."""
    for condition in status.get("conditions") or ():
        if condition.get("type") in ENDS and condition.get("status") == "True":
            own = moment_of(status.get("completionTime"))
            return own or moment_of(condition.get("lastTransitionTime"))
    return None


def _message(status: Mapping[str, Any], type_: str) -> str | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == type_ and condition.get("status") == "True":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return None


def _of_children(children: Iterable[Object]) -> Iterator[Problem]:
    for child in children:
        if child.get("kind") == "Event" and child.get("reason") == "FailedCreate":
            yield refused(child.get("note") or child.get("message") or "")
        for condition in (child.get("status") or {}).get("conditions") or ():
            match condition.get("type"), condition.get("status"), condition.get("reason"):
                case "ReplicaFailure", "True", _:
                    yield refused(condition.get("message") or "")
                case "Progressing", "False", "ProgressDeadlineExceeded":
                    yield Problem(Reason.PROGRESS_DEADLINE_EXCEEDED, condition.get("message") or "")


def refused(message: str) -> Problem:
    """Why the API server takes no more pods, from its own sentence."""
    reason = Reason.CREATE_FAILED
    if "exceeded quota" in message:
        reason = Reason.QUOTA_EXCEEDED
    elif "violates PodSecurity" in message:
        reason = Reason.POD_SECURITY_REFUSED
    elif "not found" in message:
        reason = Reason.MISSING_REFERENCE
    return Problem(reason, sentence(message))


def _of_pods(pods: Iterable[Object]) -> Iterator[Problem]:
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["name"])):
        if "deletionTimestamp" not in pod["metadata"]:
            yield from _of_pod(pod.get("status") or {})


def _of_pod(status: Mapping[str, Any]) -> Iterator[Problem]:
    if status.get("phase") == "Succeeded":
        return
    if status.get("phase") == "Failed" and status.get("reason"):
        message = f"{status['reason']}: {status.get('message', '')}"
        yield Problem(Reason.POD_REJECTED, sentence(message), 1)
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            yield _unscheduled(condition.get("message") or "")
    for containers in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(containers) or ():
            yield from _of_container(container)


def _unscheduled(message: str) -> Problem:
    missing = "not found" in message and "persistentvolumeclaim" in message
    return Problem(
        Reason.MISSING_REFERENCE if missing else Reason.UNSCHEDULABLE, sentence(message), 1
    )


def _of_container(container: Mapping[str, Any]) -> Iterator[Problem]:
    name, state = container.get("name", ""), container.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    why, message = waiting.get("reason"), waiting.get("message") or ""
    if why in _IMAGE:
        yield Problem(Reason.IMAGE_PULL_FAILED, sentence(f"container {name}: {message or why}"), 1)
    elif why in _CONFIGURATION:
        missing = "not found" in message
        reason = Reason.MISSING_REFERENCE if missing else Reason.CONTAINER_CONFIG_FAILED
        yield Problem(reason, sentence(f"container {name}: {message or why}"), 1)
    elif ended.get("reason") == "OOMKilled":
        yield Problem(
            Reason.OUT_OF_MEMORY, f"container {name} was killed for exceeding its memory limit", 1
        )
    elif why == "CrashLoopBackOff":
        yield Problem(Reason.CRASH_LOOP, f"container {name} keeps ending{_how(ended)}", 1)
    elif (state.get("terminated") or {}).get("exitCode"):
        yield Problem(Reason.CONTAINER_FAILED, f"container {name} ended{_how(ended)}", 1)


def _how(ended: Mapping[str, Any]) -> str:
    """`` with exit code 1 (message)``: the message is the container's own last words."""
    if "exitCode" not in ended:
        return ""
    words = sentence(str(ended.get("message") or ""), limit=256)
    return f" with exit code {ended['exitCode']}" + (f": {words}" if words else "")


def _grouped(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Each problem once with the number of its pods, causes first, bounded."""
    pods: Counter[tuple[Reason, str]] = Counter()
    for problem in problems:
        pods[problem.reason, problem.message] += problem.pods
    ordered = sorted(pods, key=lambda each: (_SEVERITY.index(each[0]), each[1]))
    for reason, message in ordered[:PROBLEM_LIMIT]:
        yield Problem(reason, message, pods[reason, message])
