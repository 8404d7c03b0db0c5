"""Whether a service may have no replica, for people: the condition ``ScalesToZero``."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.api.service import Scaling
from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.gateway.holding import Holding
from poolwise.plan.live.look import Mode, mode_of
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.reading import mapping, number
from poolwise.plan.scaling.controller import idle_seconds
from poolwise.plan.wording import duration, three_digits

STAYS = "one replica at least is asked for"


def asks_for_zero(service: Object) -> bool:
    """Whether its user does; a number that is nobody's but its user's (mode Off) is no question."""
    is_asked = mapping(service, "spec", "scaling").get("scaleToZero") is True
    return is_asked and mode_of(service) is not Mode.OFF


def least_replicas(service: Object) -> int:
    """As its spec says, or by default."""
    told = number(mapping(service, "spec", "scaling"), "minReplicas")
    return Scaling().min_replicas if told is None else int(told)


@dataclass(frozen=True, slots=True)
class Zero:
    """What is known of one service that asks for it."""

    holding: Holding
    is_asleep: bool
    """Whether it has no replica now."""
    start_seconds: float
    least_replicas: int
    interval_seconds: float
    """Between two looks at the queue while there is no replica."""

    @property
    def may_fall(self) -> bool:
        """Whether the last replica may leave, or stay away: it leaves only if that was told just
        now, and stays away until it is known that nothing holds requests any more."""
        if self.least_replicas > 0:
            return False
        return self.holding.holds is not False if self.is_asleep else self.holding.is_told

    def condition(self) -> Condition:
        """``ScalesToZero``."""
        holding = self.holding
        if self.least_replicas > 0:
            told = f"scaling.minReplicas is {self.least_replicas}: set it to 0 as well"
            return condition(Type.SCALES_TO_ZERO, False, Reason.MINIMUM_IS_ABOVE_ZERO, told)
        if not holding.holds:
            told = f"{holding.message}: nothing would hold the requests that come while no replica"
            told = f"{told} runs, and {STAYS}"
            return condition(Type.SCALES_TO_ZERO, holding.holds, holding.reason, told)
        waits = f"a request then waits for about {duration(self.start_seconds)}"
        if self.is_asleep:
            told = (
                f"no replica runs; InferencePool {holding.pool} holds the next request, its queue"
                f" is looked at each {three_digits(self.interval_seconds)} s: {waits}"
            )
            return condition(Type.SCALES_TO_ZERO, True, Reason.ASLEEP, told)
        idle = duration(idle_seconds(self.start_seconds))
        told = f"{holding.message}; after {idle} without any the last one leaves: {waits}"
        return condition(Type.SCALES_TO_ZERO, True, Reason.HOLDS_REQUESTS, told)
