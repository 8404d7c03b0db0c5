"""Whatever happens to a cluster, what the operator promises holds."""

from hypothesis import HealthCheck, given, settings

from tests.handlers.histories.events import histories
from tests.handlers.histories.playing import play


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(histories)
def test_what_the_operator_promises_holds_in_every_history(history):
    play(history)
