"""Figures for people: four significant digits, so that computing again writes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from poolwise.plan.wording import significant

Story = dict[str, Any]


def present(document: Mapping[str, Any]) -> Story:
    """Rounded, without what has no meaning."""
    return {name: rounded(value) for name, value in document.items() if _is_told(value)}


def rounded(value: Any) -> Any:
    """Floats to four significant digits; what is no finite number is left out of maps."""
    match value:
        case float():
            return significant(value) or 0.0
        case Mapping():
            return {key: rounded(each) for key, each in value.items() if _is_told(each)}
        case list() | tuple():
            return [rounded(each) for each in value]
    return value


def _is_told(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))
