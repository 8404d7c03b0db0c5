"""What is run by default: loads in steps, for a service whose replicas span half a node."""

from __future__ import annotations

from e2e.autoscale.live import Course
from e2e.autoscale.service import Wish
from e2e.autoscale.trace import Steps, Stretch

RISE = (Stretch(40, 0.35), Stretch(20, 2.4), Stretch(80, 2.4))
"""A load that a single replica bears becomes one for three, within a start's time. It begins well
below what one replica is trusted with: at 0.5 it was chance whether a second one was asked for
before the rise, and then far fewer were late than in the simulator's account."""
NARROW = (Stretch(60, 0.35), Stretch(60, 1.6), Stretch(120, 1.6))
"""A slower one, for where four replicas are all there can be."""
RISE_AND_FALL = (
    *(Stretch(40, 0.6), Stretch(30, 2.5), Stretch(90, 2.5)),
    *(Stretch(20, 0.7), Stretch(180, 0.7), Stretch(20, 2.0), Stretch(60, 2.0)),
)
"""It falls for so long that replicas go, before it rises again."""
COURSES = {"rise": RISE, "narrow": NARROW, "rise-and-fall": RISE_AND_FALL}


def steps(
    stretches: tuple[Stretch, ...], wish: Wish, seed: int = 0, interval_seconds: float = 5.0
) -> Course:
    """Requests as long as the service declares them."""
    source = Steps(stretches, wish.inputs, wish.outputs, seed)
    return Course(source, wish, interval_seconds=interval_seconds)
