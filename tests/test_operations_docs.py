"""docs/operations.md names every setting, as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolwise.environment import PREFIX
from poolwise.settings import Settings

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "operations.md").read_text()


def shown(default: object) -> str:
    """A default as one would write it in the environment."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    is_whole = isinstance(default, float) and default.is_integer()
    return f"{default:.0f}" if is_whole else str(default)


@pytest.mark.parametrize("field", Settings.model_fields)
def test_settings(field):
    info = Settings.model_fields[field]
    row = f"| `{PREFIX}{field.upper()}` | `{shown(info.default)}` | {info.description} |"
    assert row.replace("``", "") in PAGE
