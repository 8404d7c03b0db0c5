"""Whatever happens to a cluster, what the operator promises holds.

``make histories`` plays many more, drawn anew (docs/development.md).
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from poolwise.api.validation import problems
from tests.handlers.histories.documents import service
from tests.handlers.histories.drawn import histories
from tests.handlers.histories.known import KNOWN
from tests.handlers.histories.playing import play

problems(service("s0", {}))  # sets the recursion limit, and hypothesis warns of who does that later
COUNT = int(os.environ.get("HISTORIES", "16"))


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(histories)
def test_what_the_operator_promises_holds_in_every_history(history):
    play(history)


@pytest.mark.parametrize("history", KNOWN.values(), ids=KNOWN)
def test_what_the_operator_promises_holds_in_known_histories(history):
    play(history)
