"""One look at a service: whether the number that was decided is one to go by."""

from dataclasses import replace

import pytest

from poolwise.plan.conditions import Reason
from poolwise.plan.live.look import Rival, Standstill
from tests.plan.live.given import look

STOPPED = Standstill(Reason.DECISION_FAILED, "the decision failed")


@pytest.mark.parametrize(
    ("of", "moves"),
    [
        (look(told=1), True),
        (look(told=0), False),
        (replace(look(told=0), is_asleep=True), True),
        (replace(look(told=0), is_heard=True), True),
        (look(told=1, conflict=Rival("HorizontalPodAutoscaler theirs")), False),
        (replace(look(told=1), standstill=STOPPED), False),
    ],
    ids=["read", "nobody tells", "asleep", "its gateway tells", "another autoscaler", "failed"],
)
def test_a_number_is_set_only_where_somebody_told_and_nobody_else_sets_it(of, moves):
    assert of.moves is moves
