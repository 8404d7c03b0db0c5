"""Reasons of candidates and plans in one word each, for programs; docs explain them."""

from __future__ import annotations

import enum


class Verdict(enum.StrEnum):
    """Why a pool was taken, lost, or cannot be used."""

    CHOSEN = "Chosen"
    LOST = "Lost"
    """Feasible, and another one is better."""
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    MEMORY_DOES_NOT_FIT = "MemoryDoesNotFit"
    SHAPE_DOES_NOT_FIT = "ShapeDoesNotFit"
    """Given sizes, heads or batch do not divide over what the pool has."""
    FORMAT_UNSUPPORTED = "FormatUnsupported"
    TARGET_UNREACHABLE = "TargetUnreachable"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    TOO_EXPENSIVE = "TooExpensive"
    DEADLINE_MISSED = "DeadlineMissed"
    TOO_INTERRUPTED = "TooInterrupted"
    """On spot nodes next to all its work would be lost again."""
    NO_ENGINE = "NoEngine"
    UNKNOWN_HARDWARE = "UnknownHardware"
    CONFLICTING_LABELS = "ConflictingLabels"
    SHARED_DEVICES = "SharedDevices"
    NO_USABLE_NODE = "NoUsableNode"
    START_TIMEOUT = "StartTimeout"
    """Its pods did not start there in time, and it keeps away for a while."""
    POOL_UNUSABLE = "PoolUnusable"
    INFERENCE_ONLY = "InferenceOnly"
    CPU_POOL = "CpuPool"
    MIG_SLICES = "MigSlices"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    NOT_SELECTED = "NotSelected"
    EXCLUDED = "Excluded"
    CAPACITY_TYPE_EXCLUDED = "CapacityTypeExcluded"
    PRODUCT_EXCLUDED = "ProductExcluded"
