"""What is known of a service from look to look."""

from dataclasses import replace

import pytest

from poolwise.plan.live.knowledge import needed
from poolwise.plan.scaling.decision import Remark
from tests.plan.live.given import decision


def decided(*wanted: float, **more):
    """With what each of the latest looks wanted, in full replicas."""
    found = decision(5, **more)
    looks = tuple((15.0 * at, each) for at, each in enumerate(wanted))
    return replace(found, memory=replace(found.memory, wanted=looks))


@pytest.mark.parametrize(
    ("of", "redundancy", "replicas"),
    [
        (decided(2.2, 3.4, 1.0), 0, 4),
        (decided(3.0), 0, 3),
        (decided(3.4), 1, 3),  # spare ones may leave
        (decided(0.3), 1, 1),  # and one at least stays
        (decided(3.4, by_pool={"near": 4, "far": 0}), 0, 4),
        (decided(3.4, by_pool={"near": 4, "far": 1}), 0, None),  # which of them matters
        (decided(), 0, None),
        (decided(3.4, remarks={Remark.METRICS_MISSING: "1 of 3"}), 0, None),
        (decided(3.4, remarks={Remark.METRICS_BROKEN: "no answer"}), 0, None),
        (decided(3.4, remarks={Remark.AT_MAXIMUM: "3 at most"}), 0, 4),
    ],
)
def test_drains_must_leave_what_the_latest_looks_wanted(of, redundancy, replicas):
    assert needed(of, redundancy) == replicas
