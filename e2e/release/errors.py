"""Why a release cannot be made."""

from __future__ import annotations

from e2e.errors import HarnessError


class NotReleasable(HarnessError):
    """The tree is not fit for that release; the text says what to change, and where."""
