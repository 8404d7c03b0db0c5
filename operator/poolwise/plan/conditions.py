"""Conditions: their types, every reason, and how they are kept.

The words are part of the API (docs/conditions.md explains each one): alerts and scripts match them.
A condition's ``lastTransitionTime`` moves only when its status does.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from poolwise.plan.pool import Condition
from poolwise.plan.wording import sentence

MESSAGE_LIMIT = 2048
"""Characters; the API server allows 32768."""


class Type(enum.StrEnum):
    """What is judged, in the order in which it is shown."""

    ACCEPTED = "Accepted"
    PLANNED = "Planned"
    PLACED = "Placed"
    PODS_READY = "PodsReady"
    METRICS_AVAILABLE = "MetricsAvailable"
    SLO_MET = "SLOMet"
    SCALING_ACTIVE = "ScalingActive"
    SCALES_TO_ZERO = "ScalesToZero"
    AS_PLANNED = "AsPlanned"
    WITHIN_BUDGET = "WithinBudget"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    EVICTED = "Evicted"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    COMPLETE = "Complete"
    FAILED = "Failed"
    HARDWARE_KNOWN = "HardwareKnown"
    HARDWARE_ESTIMATED = "HardwareEstimated"
    DEVICES_HEALTHY = "DevicesHealthy"
    CAN_GROW = "CanGrow"
    NODES_EXCLUSIVE = "NodesExclusive"
    NODES_ALIKE = "NodesAlike"
    PRICE_KNOWN = "PriceKnown"
    PRICE_ESTIMATED = "PriceEstimated"
    SPEC_READ = "SpecRead"
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(enum.StrEnum):
    """Why it is so; one word for programs."""

    # The spec
    VALID = "Valid"
    INVALID_SPEC = "InvalidSpec"
    INTERNAL_ERROR = "InternalError"
    PAUSED_BY_ANNOTATION = "PausedByAnnotation"

    # The plan, and why a candidate was taken or not
    PLAN_READY = "PlanReady"
    PLAN_ONLY = "PlanOnly"
    NO_FEASIBLE_POOL = "NoFeasiblePool"
    BEYOND_SHARE = "BeyondShare"

    START_TIMEOUT = "StartTimeout"

    # The children
    PLACED = "Placed"
    MOVES = "Moves"
    PREEMPTED = "Preempted"
    NAME_CONFLICT = "NameConflict"
    NAME_IN_DELETION = "NameInDeletion"
    CHILD_REFUSED = "ChildRefused"
    FORBIDDEN = "Forbidden"

    # The pods
    STARTING = "Starting"
    RUNNING = "Running"
    PARTLY_READY = "PartlyReady"
    UPDATING = "Updating"
    ROLLOUT_PAUSED = "RolloutPaused"
    SCALED_TO_ZERO = "ScaledToZero"
    NO_PODS = "NoPods"
    QUOTA_EXCEEDED = "QuotaExceeded"
    POD_SECURITY_REFUSED = "PodSecurityRefused"
    CREATE_FAILED = "CreateFailed"
    MISSING_REFERENCE = "MissingReference"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_CONFIG_FAILED = "ContainerConfigFailed"
    CRASH_LOOP = "CrashLoop"
    OUT_OF_MEMORY = "OutOfMemory"
    CONTAINER_FAILED = "ContainerFailed"
    POD_REJECTED = "PodRejected"
    UNSCHEDULABLE = "Unschedulable"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"

    # Money
    WITHIN_LIMIT = "WithinLimit"
    COST_WILL_EXCEED = "CostWillExceed"
    COST_EXCEEDED = "CostExceeded"

    # The end of a job
    COMPLETED = "Completed"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"

    # The queue; the words of Kueue itself are repeated as they are
    QUEUED = "Queued"
    QUEUE_NOT_FOUND = "QueueNotFound"
    POOL_LABEL_NOT_IN_FLAVOR = "PoolLabelNotInFlavor"
    KUEUE_UNAVAILABLE = "KueueUnavailable"
    KUEUE_NOT_INSTALLED = "KueueNotInstalled"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_QUOTA = "ExceedsQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    MISCONFIGURED = "Misconfigured"
    DEACTIVATED = "Deactivated"

    # Measurements
    NOT_MEASURED = "NotMeasured"
    METRICS_READ = "MetricsRead"
    METRICS_BROKEN = "MetricsBroken"
    NO_METRICS_PORT = "NoMetricsPort"
    WITHIN_TARGETS = "WithinTargets"
    BEYOND_TARGETS = "BeyondTargets"
    TOO_FEW_SAMPLES = "TooFewSamples"
    SLO_UNREACHABLE = "SLOUnreachable"

    # Scaling
    FOLLOWS_LOAD = "FollowsLoad"
    AT_MAXIMUM = "AtMaximum"
    AT_CAPACITY = "AtCapacity"
    AT_COST_LIMIT = "AtCostLimit"
    STARTS_PACED = "StartsPaced"
    AUTOSCALER_CONFLICT = "AutoscalerConflict"
    EARLIER_SPEC = "EarlierSpec"
    POOL_GONE = "PoolGone"
    DECISION_FAILED = "DecisionFailed"

    # Scaling to zero, and the gateway that would hold requests
    HOLDS_REQUESTS = "HoldsRequests"
    ASLEEP = "Asleep"
    MINIMUM_IS_ABOVE_ZERO = "MinimumIsAboveZero"
    NOTHING_HOLDS_REQUESTS = "NothingHoldsRequests"
    SEVERAL_INFERENCE_POOLS = "SeveralInferencePools"
    SHARED_INFERENCE_POOL = "SharedInferencePool"
    NO_ENDPOINT_PICKER = "NoEndpointPicker"
    PICKER_SILENT = "EndpointPickerSilent"
    PICKER_REFUSES = "EndpointPickerRefuses"
    HOLDING_NOT_TOLD = "HoldingNotTold"

    # Pools, beside why hardware is not known (poolwise.plan.nodes.claims) and nodes do not come
    # (poolwise.plan.provisioning.telling)
    KNOWN = "Known"
    UNKNOWN_CPU = "UnknownCpu"
    SHARED_DEVICES = "SharedDevices"
    DEVICES_MISSING = "DevicesMissing"
    NO_NODES = "NoNodes"
    NODES_READY = "NodesReady"
    NO_USABLE_NODES = "NoUsableNodes"
    NODES_TAKEN = "NodesTaken"
    TERMS_DIFFER = "TermsDiffer"
    PRICES_DIFFER = "PricesDiffer"
    NO_PRICE = "NoPrice"
    OTHER_CURRENCY = "OtherCurrency"
    ON_DEMAND_PRICE = "OnDemandPrice"
    DISCOVERED_POOL = "DiscoveredPool"

    # What is wrong with replicas though their number may be right
    NO_MISMATCH = "NoMismatch"
    START_OVERDUE = "StartOverdue"
    PREEMPTIONS = "Preemptions"
    CACHE_PRESSURE = "KVCachePressure"
    WARM_UP_BREACHES = "WarmUpBreaches"
    TAIL_OUTGROWS_LOAD = "TailOutgrowsLoad"
    MISPREDICTED = "Mispredicted"

    # kstatus
    CONVERGED = "Converged"
    IN_PROGRESS = "InProgress"


STALLING = frozenset(
    {
        Reason.NAME_CONFLICT,
        Reason.CHILD_REFUSED,
        Reason.FORBIDDEN,
        Reason.INVALID_SPEC,
        Reason.INTERNAL_ERROR,
        Reason.NO_FEASIBLE_POOL,
        Reason.QUOTA_EXCEEDED,
        Reason.POD_SECURITY_REFUSED,
        Reason.CREATE_FAILED,
        Reason.MISSING_REFERENCE,
        Reason.IMAGE_PULL_FAILED,
        Reason.CONTAINER_CONFIG_FAILED,
        Reason.CRASH_LOOP,
        Reason.OUT_OF_MEMORY,
        Reason.FAILED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        Reason.ROLLOUT_PAUSED,
        Reason.QUEUE_NOT_FOUND,
        Reason.POOL_LABEL_NOT_IN_FLAVOR,
        Reason.KUEUE_UNAVAILABLE,
        Reason.NO_MATCHING_FLAVOR,
        Reason.EXCEEDS_QUOTA,
        Reason.EXCEEDS_MAX_QUOTA,
        Reason.MISCONFIGURED,
        Reason.DEACTIVATED,
    }
)
"""What time alone does not cure: somebody has to change something."""

_ORDER: Mapping[str, int] = {type_: position for position, type_ in enumerate(Type)}
WORDS: Mapping[bool | None, str] = {True: "True", False: "False", None: "Unknown"}


def condition(type_: Type, status: bool | None, reason: str, message: str) -> Condition:
    """A condition whose message is one bounded line, whatever text it was made from."""
    return Condition(str(type_), status, str(reason), sentence(message, MESSAGE_LIMIT))


def merged(
    previous: Iterable[Mapping[str, Any]],
    wanted: Sequence[Condition],
    generation: int,
    now: datetime,
) -> list[dict[str, Any]]:
    """``wanted`` as metav1.Conditions in a fixed order; those no longer wanted are gone."""
    known = {each.get("type"): each for each in previous if isinstance(each, Mapping)}
    shown = sorted(wanted, key=lambda each: (_ORDER.get(each.type, len(_ORDER)), each.type))
    return [_shown(each, known.get(each.type), generation, now) for each in shown]


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second, as Kubernetes writes times."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(
    wanted: Condition, known: Mapping[str, Any] | None, generation: int, now: datetime
) -> dict[str, Any]:
    status = WORDS[wanted.status]
    since = (known or {}).get("lastTransitionTime")
    moved = known is None or known.get("status") != status or not isinstance(since, str)
    return {
        "type": wanted.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": timestamp(now) if moved else since,
        "reason": wanted.reason,
        "message": wanted.message,
    }
