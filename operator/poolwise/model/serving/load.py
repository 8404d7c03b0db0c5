"""A replica under load: what is in flight, how prompts delay tokens, and the tails that follow.

Mean field of continuous batching. With b sequences in flight, a step takes D(b). A prompt of I
tokens adds P seconds of steps on top, so at r requests per second a share r*P of the time goes to
prompts, a token takes ``D / (1 - r*P)``, and Little's law ``b = r * O * D / (1 - r*P)`` gives

    r = b / (O * D(b) + b * P)

for O generated tokens a request. So the state follows from b without iterating. A model that only
reads prompts (an encoder, a classifier, an image network) has no D: its state follows from the k
prompts that one step takes together, ``r = k / T(k)``.

Requests wait twice: for a slot (cache or batch full: many servers), and for their prompt's turn
(one server). Prompts of others make single steps long: that is the tail of the inter-token time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving.iteration import Batch, StepCosts, StepTime
from poolwise.model.serving.queueing import (
    NEVER,
    Delay,
    Lengths,
    mixture_percentile,
    total,
    waiting,
)
from poolwise.model.serving.search import Known, last_inside

LOAD_STEPS = 2**40
"""That the largest load is divided into, to find the one that serves a rate."""
LEAST_CHUNK_TOKENS = 16.0
"""What a step keeps for prompts even when sequences alone would fill it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica with its traffic's shape; only the rate is open."""

    costs: StepCosts
    prompt: Lengths
    """Tokens computed per request (items: 1)."""
    generated: Lengths
    """Tokens after the first; mean 0 for models that only read."""
    context_tokens: float
    """Of a sequence in flight, on average."""
    batched_tokens: float
    cache_slots: float
    """Requests whose cache fits at the mean context."""
    batch_slots: float
    """Sequences that the engine runs at once."""
    pipeline: int
    arrival_dispersion: float
    request_seconds: float
    """Fixed part of a first token: network, tokeniser, scheduling."""
    serial_seconds: float
    """Part of a request that others wait for, beside the steps: the server's own front end."""
    prompt_ratio: float
    """Time of a prompt to its first token, over that of its steps."""
    held_steps: float
    """Steps before a prompt's own, on average, while the engine is busy."""
    interference: float
    """Share of a prompt's extra time that running sequences feel."""

    @property
    def generates(self) -> bool:
        """Whether there is anything after the first token."""
        return self.generated.mean > 0.0

    @property
    def slots(self) -> float:
        """Requests in flight at most."""
        return min(self.cache_slots, self.batch_slots)

    @property
    def largest_load(self) -> float:
        """Upper end of the load parameter of :func:`state`."""
        if self.generates:
            return self.slots
        return max(1.0, min(self.batched_tokens / self.prompt.mean, self.batch_slots))


@dataclass(frozen=True, slots=True)
class State:
    """Steady state of a replica; times are of one step."""

    requests_per_second: float
    in_flight: float
    decode: StepTime
    """Without any prompt; empty for models that only read."""
    mixed: StepTime
    """With a typical chunk of prompt."""
    full: StepTime
    """With as much of prompts as a step takes."""
    chunks: float
    """Steps that one prompt spans."""
    token_seconds: float
    """Mean time between tokens, prompts of others included."""
    prompt_service_seconds: float
    """Between two prompts when they queue up: of the engine or of its front end."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Random times of one request at a state."""

    slot_wait: Delay
    queue: Delay
    """For the prompt's turn, with the fixed part of a request."""
    prefill: Delay
    ttft: Delay
    usual_token: Delay
    long_token: Delay
    long_token_share: float
    longest_token_seconds: float
    e2e: Delay

    def token_percentile(self, percent: float) -> float:
        """Of the time between two tokens; no step is longer than a full one."""
        mixed = mixture_percentile(
            self.usual_token, self.long_token, self.long_token_share, percent
        )
        return min(mixed, self.longest_token_seconds)


def state(replica: Replica, load: float) -> State:
    """Steady state with ``load`` sequences in flight (or prompts per step, if it only reads)."""
    return _decoding(replica, load) if replica.generates else _reading(replica, load)


def state_at_rate(replica: Replica, requests_per_second: float) -> State | None:
    """The state that serves this rate; None when there is none."""
    most = replica.largest_load
    if most <= 0.0:
        return None

    def above(step: int) -> float:
        at = state(replica, most * step / LOAD_STEPS)
        return at.requests_per_second - requests_per_second

    full = Known(LOAD_STEPS, above(LOAD_STEPS))
    if full.excess <= 0.0:
        return None
    step = last_inside(above, Known(0, -requests_per_second), full) + 1
    return state(replica, most * step / LOAD_STEPS)


def latencies(replica: Replica, at: State) -> Latencies:
    """Waiting, first token, tokens and whole requests at a state."""
    rate, spread = at.requests_per_second, replica.prompt.scv
    prefill = _prefill(replica, at)
    decoding = replica.generated.mean * at.token_seconds
    rest = Delay(decoding, replica.generated.scv * decoding**2)
    service = at.prompt_service_seconds
    bursts = replica.arrival_dispersion
    prompt_wait = waiting(rate, Delay(service, spread * service**2), 1.0, bursts)
    residence = total((prompt_wait, prefill, rest))
    slot_wait = _slot_wait(replica, rate, residence)
    fixed = Delay(replica.request_seconds + replica.serial_seconds)
    queue = total((fixed, prompt_wait, _steps_before(replica, at)))
    ttft = total((slot_wait, queue, prefill))
    return Latencies(
        slot_wait=slot_wait,
        queue=queue,
        prefill=prefill,
        ttft=ttft,
        usual_token=_usual_token(replica, at),
        long_token=_long_token(replica, at),
        long_token_share=min(1.0, rate * at.chunks * at.token_seconds),
        longest_token_seconds=max(at.full.seconds, at.decode.seconds),
        e2e=total((ttft, rest)),
    )


def _decoding(replica: Replica, in_flight: float) -> State:
    sequences = max(1.0, in_flight / replica.pipeline)
    decode = _step(replica, sequences, 0.0)
    room = _room_tokens(replica, in_flight)
    chunk = min(room, replica.prompt.mean)
    chunks = replica.prompt.mean / chunk
    mixed = _step(replica, sequences, chunk)
    full = mixed if chunk == room else _step(replica, sequences, room)
    added = chunks * (mixed.seconds - decode.seconds) * replica.interference / replica.pipeline
    tokens_seconds = replica.generated.mean * decode.seconds
    rate = in_flight / (tokens_seconds + in_flight * added)
    service = replica.prompt.mean / room * full.seconds / replica.pipeline
    return State(
        requests_per_second=rate,
        in_flight=in_flight,
        decode=decode,
        mixed=mixed,
        full=full,
        chunks=chunks,
        token_seconds=decode.seconds / max(1.0 - rate * added, 1e-9),
        prompt_service_seconds=max(service, replica.serial_seconds),
    )


def _reading(replica: Replica, prompts: float) -> State:
    together = max(1.0, prompts) * replica.prompt.mean
    chunk = min(together, replica.batched_tokens)
    mixed = _step(replica, 0.0, chunk)
    busy = together / chunk * mixed.seconds
    rate = prompts / max(busy, replica.serial_seconds * max(1.0, prompts))
    full = _step(replica, 0.0, replica.batched_tokens)
    service = replica.prompt.mean / replica.batched_tokens * full.seconds
    return State(
        requests_per_second=rate * replica.pipeline,
        in_flight=rate * replica.pipeline * busy,
        decode=StepTime(),
        mixed=mixed,
        full=full,
        chunks=together / chunk,
        token_seconds=0.0,
        prompt_service_seconds=max(service / replica.pipeline, replica.serial_seconds),
    )


def _room_tokens(replica: Replica, in_flight: float) -> float:
    """What a step takes of prompts beside the sequences in flight."""
    sequences = max(1.0, in_flight / replica.pipeline) if replica.generates else 0.0
    return max(LEAST_CHUNK_TOKENS, replica.batched_tokens - sequences)


def _step(replica: Replica, sequences: float, prompt_tokens: float) -> StepTime:
    prompts = prompt_tokens / replica.prompt.mean if prompt_tokens else 0.0
    return replica.costs.step(Batch(sequences, replica.context_tokens, prompt_tokens, prompts))


def _prefill(replica: Replica, at: State) -> Delay:
    """A fixed step, and a part that varies with the length: its products, and steps beyond one."""
    own, ratio = at.chunks * (at.mixed.seconds - at.decode.seconds), replica.prompt_ratio
    room = _room_tokens(replica, at.in_flight)
    steps = replica.prompt.mean_of_at_least(room) / room
    scale = ratio * (own + replica.prompt.mean / room * at.decode.seconds)
    varying = Delay(scale, replica.prompt.scv * scale**2)
    whole = ratio * (own + steps * at.decode.seconds)
    return Delay(whole, varying.variance_seconds2, varying.skew_seconds3)


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
    return Delay(busy * mean, busy * mean**2 / 3)


def _usual_token(replica: Replica, at: State) -> Delay:
    """A step without a prompt; the number in flight fluctuates like the arrivals do."""
    if not replica.generates:
        return Delay(0.0)
    deviation = math.sqrt(at.in_flight * replica.arrival_dispersion)
    more = min(at.in_flight + deviation, replica.slots)
    longer = _step(replica, max(1.0, more / replica.pipeline), 0.0).seconds - at.decode.seconds
    return Delay(at.decode.seconds, max(longer, 0.0) ** 2)


def _long_token(replica: Replica, at: State) -> Delay:
    """A step with a chunk of somebody's prompt; whole chunks are alike, short prompts vary."""
    if not replica.generates:
        return Delay(0.0)
    filled = replica.prompt.mean / _room_tokens(replica, at.in_flight)
    spread = replica.prompt.scv * max(0.0, 1.0 - filled)
    return Delay(at.mixed.seconds, spread * (at.mixed.seconds - at.decode.seconds) ** 2)
