"""What keeps pods from running, as they and the children that make them tell it.

Messages of kubelet and API server are quoted where they name the object at fault (a missing
Secret, a quota), and put in our words where they carry counters that would change by the minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.observed import Object
from poolwise.plan.provisioning.evidence import is_claim_missing
from poolwise.plan.wording import sentence

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


def problems_of(pods: Iterable[Object], children: Iterable[Object]) -> tuple[Problem, ...]:
    """Each problem once with the number of its pods, causes first, bounded."""
    return ordered([*_of_pods(pods), *_of_children(children)])


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each once with the number of its pods, causes before consequences, bounded."""
    return tuple(_grouped(problems))


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
    elif "not found" in message or "no PriorityClass with name" in message:
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
    missing = is_claim_missing(message)
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
    pods: Counter[tuple[Reason, str]] = Counter()
    for problem in problems:
        pods[problem.reason, problem.message] += problem.pods
    ordered = sorted(pods, key=lambda each: (_SEVERITY.index(each[0]), each[1]))
    for reason, message in ordered[:PROBLEM_LIMIT]:
        yield Problem(reason, message, pods[reason, message])
