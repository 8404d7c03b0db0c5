"""Times to the first token as they were measured: what a closed loop of clients adds to a request.

The continuous benchmark behind most rows (``SemiAnalysisAI/InferenceX``, benchmark_serving.py)
keeps N requests in flight and sends 10 N of them, each as soon as another one ends, with lengths
drawn from 0.8 to 1 of those that it states. So the first N come together: the one in the middle
waits for half of the others, which is a twentieth of them in the mean over all. Later ones come
one by one, as others end; a simulation of the loop (tests/bench) agrees within a few percent.

Three more things decide what a run shows, and none is a property of the engine:

* settings that its published scripts give the engine to hold requests back, which are listed here
  (``benchmarks/*.sh`` there, read at the commits of August 2025 to April 2026);
* runs of other lengths come from a client that sends equal ones. An engine that lets prompts go
  first then keeps all clients in step for ever: every prompt waits, not only the first ones;
* on TensorRT-LLM such runs had one slot less than clients, so one request waited at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bench.serving_runs import Run
from bench.tables import number
from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.load import State, latencies, state, state_at_rate
from poolwise.model.work import Transformer

ROUNDS = 10
"""Requests that a client sends."""
FIRST_WAVE = 0.5 / ROUNDS
"""Mean share of the other clients' prompts that a prompt waits for."""
TOGETHER = 0.5
"""The same for a request's part in the server's front end: clients that end together send so."""
IN_STEP = 0.35
"""The same for prompts where clients stay in step: less than half, for they drift apart."""
STATED_LENGTHS = frozenset({(1024, 1024), (1024, 8192), (8192, 1024)})
"""Prompt and output tokens of the runs with drawn lengths."""
STEP_TOKENS = 8192
"""Of prompts in one step, with the settings of the published scripts."""
FEW_CLIENTS = 16
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
    starts: float
    """Steps with prompts that have to be launched before and for it."""
    sparse_layers: float
    serial_requests: float
    polled_seconds: float
    """Between two looks of the scheduler for new requests."""
    held_seconds: float
    """Certain waits: a batch of prompts held back, a slot that is missing."""

    @property
    def features(self) -> tuple[float, ...]:
        """What the constants :data:`TERMS` multiply."""
        return (
            self.step_seconds,
            self.prompt_seconds,
            self.starts,
            self.starts * self.sparse_layers,
            self.serial_requests,
            self.polled_seconds,
        )


TERMS = (
    "held_steps",
    "prompt_ratio",
    "request_seconds",
    "prompt_layer_seconds",
    "request_serial_seconds",
    "poll_share",
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
    offered = number(run.row, "qps_offered") or math.inf
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
    polls = _poll_steps(run)
    together = min(others, max(STEP_TOKENS / served.prompt.mean - 1.0, 0.0))
    waits = FIRST_WAVE * (others + together) + 0.5 * run.in_flight * polls / steps
    if _stays_in_step(run):
        waits += IN_STEP * others
    return FirstToken(
        step_seconds=at.token_seconds,
        prompt_seconds=at.chunks * at.mixed.seconds + waits * _added_seconds(at),
        starts=1.0 + FIRST_WAVE * others * served.prompt.mean / STEP_TOKENS,
        sparse_layers=_sparse_layers(run),
        serial_requests=TOGETHER * others,
        polled_seconds=polls * at.token_seconds,
        held_seconds=_held_seconds(run, at, steps),
    )


def _added_seconds(at: State) -> float:
    """One more prompt in the steps."""
    return at.chunks * (at.mixed.seconds - at.decode.seconds)


def _held_seconds(run: Run, at: State, steps: float) -> float:
    """By the setting of the script, or for the missing slot: one of N waits at any time."""
    held = _batch_wait_steps(run) * at.token_seconds
    if run.work.engine == "triton" and not _draws_lengths(run):
        held += steps * at.token_seconds / run.in_flight
    return held


def _sparse_layers(run: Run) -> float:
    shape = run.work.model.shape
    return float(transformer.sparse_layers(shape)) if isinstance(shape, Transformer) else 0.0


def _stated_lengths(run: Run) -> tuple[float | None, float | None]:
    return number(run.row, "isl"), number(run.row, "osl")


def _draws_lengths(run: Run) -> bool:
    return _stated_lengths(run) in STATED_LENGTHS


def _stays_in_step(run: Run) -> bool:
    return run.work.engine == "sglang" and not _draws_lengths(run)


def _batch_wait_steps(run: Run) -> float:
    """``batch_wait_timeout_iters`` of the scripts for Llama 70B on TensorRT-LLM."""
    name, is_short = run.work.model.name.lower(), _stated_lengths(run) == (1024, 1024)
    is_llama = name.startswith("llama-3") and "70b" in name
    is_set = run.work.engine == "triton" and is_llama and is_short and run.layout.tensor < 8
    return 20.0 if is_set else 0.0


def _poll_steps(run: Run) -> float:
    """``--scheduler-recv-interval`` of the scripts for SGLang on Blackwell; 1 elsewhere, as none.

    Those of GLM-5 do not set it with fp8 and leave it at 10 with fp4; those of DeepSeek leave it
    at 10 for long prompts in fp8.
    """
    if run.work.engine != "sglang" or run.machine.device.family != "blackwell":
        return 0.0
    if not _draws_lengths(run):
        return 0.0
    name, is_fp8 = run.work.model.name.lower(), run.layout.weight_format == "fp8"
    most = 30.0
    if name.startswith("glm"):
        most = 0.0 if is_fp8 else 10.0
    elif name.startswith("deepseek") and is_fp8 and number(run.row, "isl") == 8192:
        most = 10.0
    return min(most, 10.0 if run.in_flight < FEW_CLIENTS else 30.0)
