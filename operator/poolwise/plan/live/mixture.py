"""What a service's user reads of the pools that its replicas are on, where they are several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.plan.reading import Told, objects
from poolwise.plan.wording import plural, significant

_DIGITS = 2


def pools_told(
    by_pool: Mapping[str, int], weights: Mapping[str, float]
) -> list[dict[str, Any]] | None:
    """Each pool with its replicas, the first one first; None where there is one alone.

    :param weights: of one replica of each pool.
    """
    counts = {pool: count for pool, count in by_pool.items() if count}
    if len(counts) < 2:
        return None
    first = next(iter(counts))
    return [
        {
            "pool": pool,
            "replicas": count,
            **_weight(weights, pool, first),
            "reason": _why(pool, first),
        }
        for pool, count in counts.items()
    ]


def _weight(weights: Mapping[str, float], pool: str, first: str) -> dict[str, float]:
    """What one replica can bear, of what one of the first pool can."""
    if not weights.get(first) or pool not in weights:
        return {}
    return {"weight": significant(weights[pool] / weights[first], _DIGITS)}


def _why(pool: str, first: str) -> str:
    if pool == first:
        return "the service is placed here"
    return (
        f"beyond the room of {first}: of the pools that meet all targets and have room, those that "
        "add what is needed at the least cost"
    )


def numbers(told: Told) -> list[tuple[Any, Any]]:
    """Replicas by pool, of ``status.scaling``: what makes two statuses differ."""
    return [(each.get("pool"), each.get("replicas")) for each in objects(told, "pools")]


def words(told: Told) -> str:
    """``2 replicas on h100-ib, 3 on l40s-eth``; empty for one pool."""
    found = numbers(told)
    if not found or not all(isinstance(count, int) for _, count in found):
        return ""
    (first, count), *others = found
    phrases = [f"{plural(count, 'replica')} on {first}"]
    return ", ".join([*phrases, *(f"{count} on {pool}" for pool, count in others)])
