"""How the programs of bench/ end where what they were given cannot be used."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from bench.files import BadInput

BAD_INPUT = 2
"""Exit status, as for a wrong option."""


def ends_on_bad_input(main: Callable[[], int | None]) -> Callable[[], int]:
    """The same with one sentence on standard error and status 2; a ``main`` of None ends with 0."""

    @functools.wraps(main)
    def ended() -> int:
        try:
            return main() or 0
        except BadInput as error:
            print(error, file=sys.stderr)
            return BAD_INPUT

    return ended
