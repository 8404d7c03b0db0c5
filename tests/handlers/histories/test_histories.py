"""Whatever happens to a cluster, what the operator promises holds.

``make histories`` plays many more, drawn anew (docs/development.md).
"""

import os

import celpy  # noqa: F401  its import sets the recursion limit, which hypothesis would warn of
from hypothesis import HealthCheck, given, settings

from tests.handlers.histories.events import histories
from tests.handlers.histories.playing import play

COUNT = int(os.environ.get("HISTORIES", "16"))


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(histories)
def test_what_the_operator_promises_holds_in_every_history(history):
    play(history)
