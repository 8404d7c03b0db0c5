"""The notes of a release: its section of CHANGELOG.md."""

from __future__ import annotations

import re

from e2e.release.errors import NotReleasable


def section(changelog: str, version: str) -> str:
    """What stands under the heading ``## 1.2.3`` or ``## 1.2.3 - 2026-11-21``.

    Raises :class:`NotReleasable` when there is no such heading, or nothing under it.
    """
    heading = rf"^## \[?{re.escape(version)}\]?(?: - \d{{4}}-\d{{2}}-\d{{2}})?$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NotReleasable(f"CHANGELOG.md: has no heading ## {version}; rename ## Unreleased")
    if not found[1].strip():
        raise NotReleasable(f"CHANGELOG.md: says nothing under ## {version}")
    return found[1].strip() + "\n"
