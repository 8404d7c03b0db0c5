"""Figures for people: four significant digits, so that computing again writes nothing.

A story keeps them as they are until it is written (:func:`rounded`), so that words made of it say
the same as sentences of the plan: what is rounded twice may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from poolwise.plan.wording import significant

Story = dict[str, Any]


def present(document: Mapping[str, Any]) -> Story:
    """Without what has no meaning."""
    return {name: value for name, value in document.items() if _is_told(value)}


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
