"""What an administrator may tune, with the reason for each default. Immutable after start-up.

The environment sets a field by its upper-case name behind ``POOLWISE_``
(``POOLWISE_CURRENCY=EUR``); see :func:`from_environment`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """One flat table; sections are comments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Placement
    currency: str = Field("USD", description="Currency of the shipped prices.")
