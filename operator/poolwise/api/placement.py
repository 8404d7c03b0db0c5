"""Where a workload may run, and what the choice among such places optimises."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    field_validator,
)

from poolwise.api.base import ApiModel
from poolwise.api.markers import LIST_SET, VALIDATIONS, Rule
from poolwise.api.names import DnsName, LabelKey
from poolwise.api.quantity import Quantity

CapacityType = Literal["Reserved", "OnDemand", "Spot"]
CAPACITY_TYPES: tuple[CapacityType, ...] = ("Reserved", "OnDemand", "Spot")
PoolNames = Annotated[
    tuple[Annotated[DnsName, Field(min_length=1)], ...], Field(max_length=64), LIST_SET
]


_IN_BOTH = "pool in self.excludePools && pool.matches('^[-a-z0-9.]+$')"
"""Only names of a good form are repeated in the message, so that no control character is."""


def _existing(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """What the API server's pattern lets pass and no calendar has: 30 February, or +25:00."""
    try:
        return read(given)
    except ValidationError:
        raise ValueError("must be a time that exists, such as 2026-12-24T00:00:00Z") from None


Time = Annotated[
    datetime,
    WrapValidator(_existing),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 40,
            VALIDATIONS: [
                Rule(
                    "self.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
                    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?"
                    "(Z|[-+][0-9]{2}:[0-9]{2})$')",
                    "must be a time as in RFC 3339, such as 2026-12-24T00:00:00Z",
                ).as_validation()
            ],
        }
    ),
]
"""Not ``format: date-time``, to which the API server (1.36) lets a list pass."""


class Topology(ApiModel):
    """How close to each other the nodes of one gang must be."""

    mode: Literal["Auto", "Required", "Preferred", "Unconstrained"] = "Auto"
    """Auto asks for one domain of the fabric where the predicted communication pays for it.
    Example: `Required`."""
    level: LabelKey = ""
    """Node label of the level that must be shared; the nearest that fits when empty.
    Example: `topology.kubernetes.io/zone`."""


class Placement(ApiModel):
    """Which pools may be used."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.pools) || !has(self.excludePools) || !self.pools.exists(pool, {_IN_BOTH})",
            "must not name %s, which pools names too",
            (f"self.pools.filter(pool, {_IN_BOTH})[0]",),
            ".excludePools",
        ),
    )

    pools: PoolNames = ()
    """AcceleratorPools that may be used; all when empty. Example: `[h100-ib]`."""
    exclude_pools: PoolNames = ()
    """AcceleratorPools that must not be used. Example: `[t4-legacy]`."""
    capacity_types: Annotated[tuple[CapacityType, ...], Field(max_length=3), LIST_SET] = Field(
        CAPACITY_TYPES
    )
    """Terms of purchase that are acceptable; all when empty. Example: `[Reserved, OnDemand]`."""
    topology: Topology = Field(default_factory=Topology)
    """How close to each other the nodes of one gang must be. Example: `{mode: Required}`."""

    @field_validator("capacity_types")
    @classmethod
    def _all_when_empty(cls, given: tuple[CapacityType, ...]) -> tuple[CapacityType, ...]:
        return given or CAPACITY_TYPES


class TrainingObjective(ApiModel):
    """What the choice among feasible places minimises, and its limits."""

    goal: Literal["Time", "Cost", "Energy"] = "Time"
    """What is minimised. Of costs that differ by less than 2 % the faster is taken. Example:
    `Cost`."""
    deadline: Time | None = None
    """When the run must be finished, RFC 3339. Example: `"2026-12-24T00:00:00Z"`."""
    max_cost: Annotated[float, Quantity("0", "1T", '"40000"')] | None = None
    """Most that the whole run may cost, in the operator's currency. Example: `"40000"`."""


class ServingObjective(ApiModel):
    """What the choice among feasible places minimises, and its limits."""

    goal: Literal["Cost", "Time", "Energy"] = "Cost"
    """What is minimised. Example: `Cost`."""
    max_cost_per_hour: Annotated[float, Quantity("0", "1G", '"50"')] | None = None
    """Most that all replicas together may cost per hour, in the operator's currency.
    Example: `"50"`."""
