"""Whether requests that come while a service has no replica are held, by all that is known.

Three answers. Held: every endpoint picker told so a moment ago. Not held: something stands against
it, or nobody has told for a while. Not known: nobody has told yet, and that is not for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from poolwise.plan.conditions import Reason
from poolwise.plan.gateway.fronts import Front
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.wording import duration

PATIENCE_SECONDS = 30.0
"""Without word of an endpoint picker, until it is taken to hold nothing any more: it restarts in
less, and packets get lost."""

Told = PickerTold | Fault


@dataclass(frozen=True, slots=True)
class Trust:
    """What earlier looks leave."""

    told_at_seconds: float | None = None
    """When it was last told that requests are held."""
    asked_at_seconds: float | None = None
    """Since when that is asked in vain."""

    def is_over(self, now_seconds: float) -> bool:
        """Whether it was asked in vain for too long."""
        since = self.asked_at_seconds
        return since is not None and now_seconds - since >= PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Holding:
    """What is known now."""

    holds: bool | None
    """None: not known yet."""
    is_told: bool
    """Whether that was told just now: only then may the last replica go."""
    reason: Reason
    message: str
    held_requests: float = 0.0
    """As far as anybody told."""
    pool: str = ""
    """Name of the InferencePool, where one stands before the service."""


def holding(
    front: Front, told: Sequence[Told] | str, trust: Trust, now_seconds: float
) -> tuple[Holding, Trust]:
    """What is known after a look.

    :param told: by each endpoint picker; or why there is none to ask, as a clause.
    """
    name = front.pool.name if front.pool else ""
    looks = () if isinstance(told, str) else told
    queued = sum(_queued(each, name) for each in looks if isinstance(each, PickerTold))
    if front.reason is not None:  # whose requests are in its queue, nobody can tell
        return Holding(False, False, front.reason, front.problem, pool=name), Trust()
    found, held = _problem(told, name), f"InferencePool {name} holds requests while no replica runs"
    if found is None:
        known = Holding(True, True, Reason.HOLDS_REQUESTS, held, queued, name)
        return known, Trust(told_at_seconds=now_seconds)
    reason, message = found
    since = now_seconds if trust.asked_at_seconds is None else trust.asked_at_seconds
    trust = replace(trust, asked_at_seconds=since)
    if trust.is_over(now_seconds):
        return Holding(False, False, reason, message, queued, name), trust
    if trust.told_at_seconds is not None:
        return Holding(True, False, Reason.HOLDS_REQUESTS, held, queued, name), trust
    waits = f"{message}; that counts if it lasts for {duration(PATIENCE_SECONDS)}"
    return Holding(None, False, Reason.NOT_MEASURED, waits, queued, name), trust


def _problem(told: Sequence[Told] | str, pool: str) -> tuple[Reason, str] | None:
    """What stands against it; None: nothing, every endpoint picker holds requests."""
    if isinstance(told, str):
        return Reason.NO_ENDPOINT_PICKER, told
    problems = (_of_one(each, pool) for each in told)
    return next((each for each in problems if each is not None), None)


def _of_one(told: Told, pool: str) -> tuple[Reason, str] | None:
    picker = f"the endpoint picker of InferencePool {pool}"
    if isinstance(told, Fault):
        if told.asks_for_login:
            return Reason.PICKER_REFUSES, (
                f"{picker}: {told.reason}; it requires a login, and Poolwise sends its token to"
                " nobody: start it with --metrics-endpoint-auth=false, or name a Prometheus that"
                " reads it"
            )
        return Reason.PICKER_SILENT, f"{picker}: {told.reason}"
    if told.pools and pool not in told.pools:
        named = ", ".join(sorted(told.pools)[:3])
        return Reason.HOLDING_NOT_TOLD, f"{picker} serves metrics of InferencePool {named} only"
    if not told.runs_flow_control:
        what = "no metrics of a queue"
        if told.queues:
            what = "the length of its queue, but no sign that it holds requests without an endpoint"
        return Reason.HOLDING_NOT_TOLD, (
            f"{picker} serves {what}: turn on its feature gate flowControl, in a release that"
            " counts its dispatch cycles (Gateway API Inference Extension 1.4 and 1.5 from their"
            " first request on, llm-d router 0.9 at once)"
        )
    return None


def _queued(told: PickerTold, pool: str) -> float:
    return told.queues.get(pool, 0.0) + told.queues.get("", 0.0)
