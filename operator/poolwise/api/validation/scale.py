"""What the scale subresource asks of ``spec.replicas``, beside the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.api.validation.field_error import FieldError, Kind

_FIELD = ".spec.replicas"
_LARGEST = 2**31 - 1


def scale_errors(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """A sentence if the number is none that a Scale can hold; its type is the schema's matter."""
    spec = document.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        return
    if replicas < 0:
        yield FieldError(_FIELD, Kind.INVALID, "should be a non-negative integer", replicas)
    if replicas > _LARGEST:
        detail = f"should be less than or equal to {_LARGEST}"
        yield FieldError(_FIELD, Kind.INVALID, detail, replicas)
