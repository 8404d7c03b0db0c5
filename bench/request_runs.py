"""Times to the first token as they were measured: what a closed loop of clients adds to a request.

The continuous benchmark behind most rows (``SemiAnalysisAI/InferenceX``, benchmark_serving.py)
keeps N requests in flight and sends 10 N of them, each as soon as another one ends, with lengths
drawn from 0.8 to 1 of those that it states. So the first N come together: the one in the middle
waits for half of the others, which is a twentieth of them in the mean over all. Later ones come
one by one, as others end; a simulation of the loop (tests/bench) agrees within a few percent.

What a run shows beside is none of the engine's own doing: settings of the published scripts that
hold requests back, and clients that send equal lengths (:mod:`bench.request_settings`). Their parts
have constants of their own (shares of a stated setting), so that they bend no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bench import request_settings as settings
from bench.serving_clients import stays_in_step
from bench.serving_runs import Run
from bench.tables import rate
from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.front_end import REQUESTS, early_share
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import State, state, state_at_rate
from poolwise.model.shapes import Transformer

ROUNDS = 10
"""Requests that a client sends."""
FIRST_WAVE = 0.5 / ROUNDS
"""Mean share of the other clients' prompts that a prompt waits for."""
TOGETHER = 0.5
"""The same for a request's part in the server's front end: clients that end together send so."""
STEP_TOKENS = 8192
"""Of prompts in one step, with the settings of the published scripts."""
UNDATED_EARLY_SHARE = 0.5
"""Of runs without a date, neither early nor late: their clients are others, and what a request
costs there, whatever the release, says little of dated ones."""
OPEN_LOOP_REQUESTS = 500.0
"""Of the runs at an offered rate (TensorRT-LLM's performance overview)."""
POISSON = 1.0


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A time to the first token in parts, most of which a constant scales."""

    step_seconds: float
    """One step while it waits."""
    prompt_seconds: float
    """Its own prompt, and those that it waits for."""
    prompt_tokens: float
    early_share: float
    """Of the cost of early software (:func:`poolwise.model.serving.front_end.early_share`)."""
    layer_starts: float
    """Sparse layers to launch, in all steps with prompts before it and its own."""
    serial_requests: float
    polled_seconds: float
    """Between two looks of the scheduler for new requests."""
    in_step_seconds: float
    """Prompts of all clients, where they stay in step."""
    turn_seconds: float
    """A request's whole time over the clients: the wait for one missing slot."""
    balance_seconds: float
    """That a prompt is held for a balanced step at most."""
    held_seconds: float
    """A batch of prompts held back, for certain."""

    @property
    def features(self) -> tuple[float, ...]:
        """What the constants :data:`TERMS` multiply."""
        early, late = self.early_share, 1.0 - self.early_share
        return (
            self.step_seconds,
            self.prompt_seconds,
            self.prompt_tokens,
            late,
            early,
            late * self.layer_starts,
            early * self.layer_starts,
            self.serial_requests,
            self.polled_seconds,
            self.in_step_seconds,
            self.turn_seconds,
            self.balance_seconds,
        )


TERMS = (
    "held_steps",
    "prompt_ratio",
    "prompt_token_seconds",
    "request_seconds",
    "early_request_seconds",
    "prompt_layer_seconds",
    "early_prompt_layer_seconds",
    "request_serial_seconds",
    "poll_share",
    "in_step_share",
    "missing_slots",
    "balance_share",
)


def first_token_seconds(run: Run, calibration: Calibration) -> float:
    """Mean time to the first token of a closed loop."""
    parts, device = first_token(run, calibration), run.machine.device
    values = (calibration.value(REQUESTS, term, device, run.work.engine) for term in TERMS)
    scaled = sum(value * each for value, each in zip(values, parts.features, strict=True))
    return scaled + parts.held_seconds


def open_loop_first_token_seconds(run: Run, calibration: Calibration) -> float:
    """Mean over a finite run at an offered rate, which may be more than the engine keeps up with.

    Half of the requests are in flight at most, on average; prompts that come faster than they are
    read pile up until the last one has come.
    """
    served = replace(run.replica(calibration), arrival_dispersion=POISSON)
    offered = rate(run.row, "qps_offered") or math.inf
    crowd = min(OPEN_LOOP_REQUESTS / 2.0, served.largest_load)
    at = state_at_rate(served, offered)
    if at is None or at.in_flight > crowd:
        at = state(served, crowd)
    half = OPEN_LOOP_REQUESTS / 2.0
    late = half * max(0.0, at.prompt_service_seconds - 1.0 / offered)
    times, alone = latencies(served, at), latencies(served, state(served, min(1.0, crowd)))
    most = alone.queue.mean_seconds + (half * at.prompt_service_seconds if not late else 0.0)
    return min(times.queue.mean_seconds, most) + times.prefill.mean_seconds + late


def first_token(run: Run, calibration: Calibration) -> FirstToken:
    """The parts, which depend on the constants of the engine's step alone."""
    served = run.replica(calibration)
    at = state(served, max(1.0, run.in_flight))
    others = max(run.in_flight - 1.0, 0.0)
    steps = served.generated.mean + 1.0
    polls = settings.poll_steps(run)
    together = min(others, max(STEP_TOKENS / served.prompt.mean - 1.0, 0.0))
    waits = FIRST_WAVE * (others + together) + 0.5 * run.in_flight * polls / steps
    starts = 1.0 + FIRST_WAVE * others * served.prompt.mean / STEP_TOKENS
    turn = steps * at.token_seconds / run.in_flight
    return FirstToken(
        step_seconds=at.token_seconds,
        prompt_seconds=at.chunks * at.mixed.seconds + waits * _added_seconds(at),
        prompt_tokens=served.prompt.mean,
        early_share=_early_share(run),
        layer_starts=starts * _sparse_layers(run),
        serial_requests=TOGETHER * others,
        polled_seconds=polls * at.token_seconds,
        in_step_seconds=others * _added_seconds(at)
        if stays_in_step(run.row, run.work.engine)
        else 0.0,
        turn_seconds=turn if settings.lacks_slots(run) else 0.0,
        balance_seconds=settings.balance_steps(run) * at.token_seconds,
        held_seconds=settings.batch_wait_steps(run) * at.token_seconds,
    )


def _added_seconds(at: State) -> float:
    """One more prompt in the steps."""
    return at.chunks * (at.mixed.seconds - at.decode.seconds)


def _early_share(run: Run) -> float:
    if not run.row.get("source_date"):
        return UNDATED_EARLY_SHARE
    return early_share(run.work.software_year)


def _sparse_layers(run: Run) -> float:
    shape = run.work.model.shape
    return float(transformer.sparse_layers(shape)) if isinstance(shape, Transformer) else 0.0
