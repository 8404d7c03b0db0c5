"""How many accelerators of which kinds a workload may take."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import LIST_SET, Rule
from poolwise.api.names import Title

Products = Annotated[
    tuple[Annotated[Title, Field(min_length=1)], ...], Field(max_length=32), LIST_SET
]


class TrainingAccelerators(ApiModel):
    """Exactly one of `count` and the pair of `min` and `max`."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.count) ? !has(self.min) && !has(self.max) : has(self.min) && has(self.max)",
            "must have either count, or both min and max",
        ),
        Rule(
            "!has(self.min) || !has(self.max) || self.min <= self.max",
            "must be at most max (%d), is %d",
            ("self.max", "self.min"),
            ".min",
        ),
    )

    count: int | None = Field(None, ge=1, le=65_536)
    """Accelerators, neither more nor fewer. Example: `64`."""
    min: int | None = Field(None, ge=1, le=65_536)
    """Fewest accelerators that make sense. Example: `8`."""
    max: int | None = Field(None, ge=1, le=65_536)
    """Most accelerators that may be taken. Example: `64`."""
    products: Products = ()
    """Names, aliases or short names (`H100`: every kind of it) of the shipped table that may be
    used; all when empty.
    Example: `[H100-SXM5-80GB, H200-SXM-141GB]`."""

    @property
    def least(self) -> int:
        """``count``, or ``min``."""
        return self.count or self.min or 1

    @property
    def most(self) -> int:
        """``count``, or ``max``."""
        return self.count or self.max or self.least


class ServingAccelerators(ApiModel):
    """Accelerators of one replica."""

    per_replica: int | None = Field(None, ge=1, le=1024)
    """Accelerators of one replica; chosen when absent, and none where CPUs do. Example: `2`."""
    products: Products = ()
    """Names, aliases or short names (`H100`: every kind of it) of the shipped table that may be
    used; all when empty.
    Example: `[L40S]`."""
