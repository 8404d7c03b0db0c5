"""What one request goes through at a state: waiting, its first token, and the tails of all tokens.

Requests wait twice: for a slot (cache or batch full: many servers), and for their prompt's turn
(one server). Prompts of others make single steps long: that is the tail of the inter-token time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving import mean_gap
from poolwise.model.serving.load import Replica, State, decode_seconds
from poolwise.model.serving.queueing import (
    NEVER,
    AfterWait,
    Between,
    Delay,
    mixture_percentile,
    total,
    waiting,
)
from poolwise.model.serving.routing import met_share

LONG_PROMPT_DEVIATIONS = 3.0
"""Of lengths, above the mean: about one prompt in seventy of the log-normal law is longer."""


@dataclass(slots=True)  # not frozen, as TokenTimes: a search makes thousands
class _RequestTimes:
    slot_wait: Delay
    queue: Delay
    prefill: Delay
    rest: Delay
    """From the first token to the last."""


@dataclass(slots=True)
class TokenTimes:
    """Random times between two tokens: usual ones, and those with somebody's prompt."""

    usual: Delay
    long: Delay
    long_share: float
    usual_range_seconds: tuple[float, float]
    """Of a sequence alone, and with every slot taken: no usual time is outside. Their law knows
    neither end: its median would sink below the one while load grows, and its tail from beyond the
    other down to it."""

    def percentile(self, percent: float) -> float:
        """However long the longest step is."""
        return mixture_percentile(self._bounded, self.long, self.long_share, percent)

    def share_later(self, seconds: float) -> float:
        """Of all tokens; no search is needed for it, as for a percentile."""
        usual, long = self._bounded.share_below(seconds), self.long.share_below(seconds)
        return 1.0 - usual - self.long_share * (long - usual)

    @property
    def _bounded(self) -> Between:
        return Between(self.usual, *self.usual_range_seconds)


class Latencies:
    """Random times of one request at a state, worked out when they are asked for."""

    __slots__ = ("_at", "_replica", "_requests", "_tokens")

    def __init__(self, replica: Replica, at: State) -> None:
        self._replica, self._at = replica, at
        self._requests: _RequestTimes | None = None
        self._tokens: TokenTimes | None = None

    @property
    def _request(self) -> _RequestTimes:
        if self._requests is None:
            self._requests = _request_times(self._replica, self._at)
        return self._requests

    @property
    def tokens(self) -> TokenTimes:
        """Between two tokens."""
        if self._tokens is None:
            self._tokens = _token_times(self._replica, self._at)
        return self._tokens

    @property
    def slot_wait(self) -> Delay:
        """For room in the cache or the batch."""
        return self._request.slot_wait

    @property
    def queue(self) -> Delay:
        """For the prompt's turn, with the fixed part of a request."""
        return self._request.queue

    @property
    def prefill(self) -> Delay:
        """Its own prompt."""
        return self._request.prefill

    @property
    def ttft(self) -> AfterWait:
        """From arrival to the first token."""
        times = self._request
        return AfterWait(times.slot_wait, total((times.queue, times.prefill)))

    @property
    def e2e(self) -> AfterWait:
        """From arrival to the last token."""
        times = self._request
        return AfterWait(times.slot_wait, total((times.queue, times.prefill, times.rest)))

    @property
    def longest_token_seconds(self) -> float:
        """Between two tokens, as no step is longer than a full one."""
        return max(self._at.full.seconds, self._at.decode.seconds)

    def token_percentile(self, percent: float) -> float:
        """Of the time between two tokens."""
        return min(self.tokens.percentile(percent), self.longest_token_seconds)

    def mean_gap_percentile(self, percent: float) -> float:
        """Of requests' mean times between two tokens."""
        return mean_gap.percentile(self._replica, self._at, percent)

    def mean_gap_share_later(self, seconds: float) -> float:
        """Of requests, those whose mean time between two tokens is longer."""
        return mean_gap.share_later(self._replica, self._at, seconds)


def latencies(replica: Replica, at: State) -> Latencies:
    """Waiting, first token, tokens and whole requests at a state."""
    return Latencies(replica, at)


def _request_times(replica: Replica, at: State) -> _RequestTimes:
    rate = at.requests_per_second
    slower = replica.first_token_slowness / replica.slowness  # beyond what its steps already are
    prefill = _prefill(replica, at).scaled(slower)
    rest = replica.generated.scaled(replica.generated.mean * at.token_seconds)
    service = replica.prompt.scaled(at.prompt_service_seconds)
    prompt_wait = _prompt_wait(replica, at, service)
    slot_wait = _slot_wait(replica, rate, total((prompt_wait, prefill, rest)))
    fixed = Delay(replica.request_seconds + replica.serial_seconds)
    queue = total((fixed, prompt_wait, _steps_before(replica, at))).scaled(slower)
    return _RequestTimes(slot_wait, queue, prefill, rest)


def _prompt_wait(replica: Replica, at: State, service: Delay) -> Delay:
    """For one's turn. Who finds a prompt being read waits for the rest of it and for those before.

    A queue to which fewer come while somebody is served is, for these, the one with their rate.
    """
    busy = at.requests_per_second * service.mean_seconds
    met = met_share(busy, at.in_flight, replica.routed.peers)
    return waiting(at.requests_per_second * met, service, 1.0, replica.arrival_dispersion)


def _token_times(replica: Replica, at: State) -> TokenTimes:
    alone, all_taken = replica.decode_range_seconds if replica.generates else (0.0, 0.0)
    return TokenTimes(
        _usual_token(replica, at),
        _long_token(replica, at),
        min(1.0, at.requests_per_second * at.chunks * at.token_seconds),
        (alone, max(all_taken, at.decode.seconds)),
    )


def _prefill(replica: Replica, at: State) -> Delay:
    """A fixed step, and a part that varies with the length: its products, and steps beyond one."""
    prompt, ratio, decode = replica.prompt, replica.prompt_ratio, at.decode.seconds
    own = at.chunks * (at.mixed.seconds - decode)
    room = at.room_tokens
    varying = prompt.scaled(ratio * _varying_seconds(replica, at))
    whole = ratio * (own + prompt.mean_of_at_least(room) / room * decode)
    return Delay(whole, varying.variance_seconds2, varying.third_seconds3)


def _varying_seconds(replica: Replica, at: State) -> float:
    """Of a prompt of mean length, by what a token takes between that and a long one: those make the
    tail, and reading the weights hides behind their arithmetic, or comes again with each chunk.
    """
    prompt, room = replica.prompt, at.room_tokens
    usual_seconds = at.chunks * at.mixed.seconds
    beyond = LONG_PROMPT_DEVIATIONS * prompt.mean * math.sqrt(prompt.scv)
    if not replica.generates or beyond <= 0.0:
        return usual_seconds
    long = prompt.mean + beyond
    if long < room:
        return prompt.mean * (at.full.seconds - usual_seconds) / (room - prompt.mean)
    return prompt.mean * (long / room * at.full.seconds - usual_seconds) / beyond


def _slot_wait(replica: Replica, rate: float, residence: Delay) -> Delay:
    if not replica.generates:
        return Delay(0.0)
    if math.isinf(residence.mean_seconds):
        return NEVER
    return waiting(rate, residence, replica.slots, replica.arrival_dispersion)


def _steps_before(replica: Replica, at: State) -> Delay:
    """The steps that pass before a prompt's own: uniform around their mean, while it is busy.

    With half a step as the mean that is the rest of the running one.
    """
    busy = min(1.0, at.in_flight)
    step = max(at.token_seconds, 0.0) or at.chunks * at.mixed.seconds
    mean = replica.held_steps * step
    return Delay.log_normal(busy * mean, busy * mean**2 / 3)


def _usual_token(replica: Replica, at: State) -> Delay:
    """A step without a prompt; the number in flight fluctuates like the arrivals do."""
    if not replica.generates:
        return Delay(0.0)
    deviation = math.sqrt(at.in_flight * replica.arrival_dispersion)
    more = min(at.in_flight + deviation, replica.slots)
    seconds = at.decode.seconds
    return Delay.log_normal(seconds, max(decode_seconds(replica, more) - seconds, 0.0) ** 2)


def _long_token(replica: Replica, at: State) -> Delay:
    """A step with a chunk of somebody's prompt; whole chunks are alike, short prompts vary."""
    if not replica.generates:
        return Delay(0.0)
    mixed, filled = at.mixed.seconds, replica.prompt.mean / at.room_tokens
    spread = replica.prompt.scv * max(0.0, 1.0 - filled)
    return Delay.log_normal(mixed, spread * (mixed - at.decode.seconds) ** 2)
