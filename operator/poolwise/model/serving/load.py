"""A replica under load: what is in flight, and how prompts delay tokens.

Mean field of continuous batching. With b sequences in flight, a step takes D(b). A prompt of I
tokens adds P seconds of steps on top, so at r requests per second a share r*P of the time goes to
prompts, a token takes ``D / (1 - r*P)``, and Little's law ``b = r * O * D / (1 - r*P)`` gives

    r = b / (O * D(b) + b * P)

for O generated tokens a request. So the state follows from b without iterating: b / O answers end
in a step and as many prompts begin, and where that is more than one they share it. A model that
only reads prompts (an encoder, a classifier, an image network) has no D: its state follows from the
k prompts that one step takes together, ``r = k / T(k)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.model.serving.iteration import Batch, StepCosts, StepTime
from poolwise.model.serving.queueing import Lengths
from poolwise.model.serving.routing import BY_CHANCE, Routed
from poolwise.model.serving.search import Probe, last_inside

LOAD_STEPS = 2**40
"""That the largest load is divided into, to find the one that serves a rate."""
LEAST_CHUNK_TOKENS = 16.0
"""What a step keeps for prompts even when sequences alone would fill it."""


@dataclass(slots=True)  # not frozen: searches make many, and freezing takes longer
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
    gaps: tuple[tuple[float, float], ...] = ()
    """Between the tokens of answers, with the share of requests that have so many; empty: as many
    in all as on average, where there are any."""
    routed: Routed = BY_CHANCE
    slowness: float = 1.0
    """Of its steps, beside the formulas (:mod:`poolwise.model.serving.slowness`)."""
    first_token_slowness: float = 1.0
    _range: tuple[float, float] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def decode_range_seconds(self) -> tuple[float, float]:
        """Of a step without any prompt: with one sequence alone, and with every slot taken."""
        if self._range is None:
            self._range = decode_seconds(self, 1.0), decode_seconds(self, self.slots)
        return self._range

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


@dataclass(slots=True)  # not frozen: a search makes thousands, and freezing takes longer
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
    room_tokens: float
    """Of prompts, in a full step."""
    chunks: float
    """Steps that one prompt spans."""
    token_seconds: float
    """Mean time between tokens, prompts of others included."""
    prompt_service_seconds: float
    """Between two prompts when they queue up: of the engine or of its front end."""
    added_seconds: float = 0.0
    """Of steps, that a prompt adds to those of the sequences that run."""


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

    full = Probe(LOAD_STEPS, above(LOAD_STEPS))
    if full.excess <= 0.0:
        return None
    step = last_inside(above, Probe(0, -requests_per_second), full) + 1
    return state(replica, most * step / LOAD_STEPS)


def decode_seconds(replica: Replica, in_flight: float) -> float:
    """Of a step without any prompt."""
    return decode_step(replica, in_flight).seconds


def decode_step(replica: Replica, in_flight: float) -> StepTime:
    """A step without any prompt."""
    return _step(replica, max(1.0, in_flight / replica.pipeline), 0.0)


def _decoding(replica: Replica, in_flight: float) -> State:
    pipeline, prompt_tokens = replica.pipeline, replica.prompt.mean
    sequences = max(1.0, in_flight / pipeline)
    room = _room_tokens(replica, sequences)
    chunk = min(room, prompt_tokens)
    chunks = prompt_tokens / chunk
    decode, mixed = _step(replica, sequences, 0.0), _step(replica, sequences, chunk)
    full = mixed if chunk == room else _step(replica, sequences, room)
    alone = decode.seconds
    added = _added_seconds(replica, sequences, room, decode, mixed, full)
    felt = added * replica.interference / pipeline
    rate = in_flight / (replica.generated.mean * alone + in_flight * felt)
    service = prompt_tokens / room * full.seconds / pipeline
    return State(
        rate,
        in_flight,
        decode,
        mixed,
        full,
        room,
        chunks,
        token_seconds=alone / max(1.0 - rate * felt, 1e-9),
        prompt_service_seconds=max(service, replica.serial_seconds),
        added_seconds=added,
    )


def _added_seconds(
    replica: Replica,
    sequences: float,
    room: float,
    decode: StepTime,
    mixed: StepTime,
    full: StepTime,
) -> float:
    """Of one prompt, as its share of a step that several begin in: what hides behind the decoding
    of a step hides once."""
    prompt_tokens = replica.prompt.mean
    together = max(1.0, sequences / replica.generated.mean)
    chunk = min(room, together * prompt_tokens)
    shared = full
    if chunk < room:
        shared = mixed if together == 1.0 else _step(replica, sequences, chunk)
    return max(prompt_tokens / chunk * (shared.seconds - decode.seconds), 0.0)


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
        room_tokens=_room_tokens(replica, 0.0),
        chunks=together / chunk,
        token_seconds=0.0,
        prompt_service_seconds=max(service / replica.pipeline, replica.serial_seconds),
    )


def _room_tokens(replica: Replica, sequences: float) -> float:
    """What a step takes of prompts beside the sequences in flight."""
    return max(LEAST_CHUNK_TOKENS, replica.batched_tokens - sequences)


def _step(replica: Replica, sequences: float, prompt_tokens: float) -> StepTime:
    prompts = prompt_tokens / replica.prompt.mean if prompt_tokens else 0.0
    batch = Batch(sequences, replica.context_tokens, prompt_tokens, prompts)
    return replica.costs.step(batch, replica.slowness)
