"""What a request takes beside the steps that serve it: its engine's front end and prompt path.

Between a request's arrival and its first token lie the server (HTTP, tokeniser), the scheduler,
which takes new requests up between two steps and keeps a few in its pipeline, and a prompt's own
step, which most engines launch kernel by kernel, without a captured graph: sparse layers have many
small kernels, so each of them adds. The constants are fitted by engine (``bench.fit.requests``).
Engines have learnt to launch prompts with fewer calls: releases of 2025 cost more, by constants of
their own, and those between are between.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.queueing import log_normal
from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingWork

REQUESTS = "requests"
"""Phase of the constants."""
EARLY_YEAR, LATE_YEAR = 2025.75, 2026.3
"""Between them the measured cost of a request fell; chosen by leaving groups out."""
MEAN_STEP_LEFT = 0.5
"""Of the step that runs when a request comes."""


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Of one engine with one model."""

    request_seconds: float
    """Fixed part of a first token: network, tokeniser, scheduling, launching the prompt's step."""
    serial_seconds: float
    """Part of a request that others wait for, beside the steps: the server itself."""
    prompt_ratio: float = 1.0
    """Time of a prompt, over that of the same tokens by the step's constants."""
    held_steps: float = MEAN_STEP_LEFT
    """Steps that pass before a prompt's own one, while the engine is busy."""


def front_end(work: ServingWork, machine: Machine, calibration: Calibration) -> FrontEnd:
    """Token engines schedule and stream; models that only read have a server of batches."""

    def constant(term: str) -> float:
        return calibration.value(REQUESTS, term, machine.device, work.engine)

    speed, shape = machine.host.dispatch_speed, work.model.shape
    if not isinstance(shape, Transformer) or not shape.is_decoder:
        fixed, serial = constant("item_request_seconds"), constant("item_request_serial_seconds")
        return FrontEnd(fixed / speed, serial / speed)
    layers, early = transformer.sparse_layers(shape), early_share(work.software_year)
    fixed = constant("request_seconds") + layers * constant("prompt_layer_seconds")
    if early > 0.0:
        older = constant("early_request_seconds") + layers * constant("early_prompt_layer_seconds")
        fixed += early * (older - fixed)
    prompt = log_normal(max(work.input_tokens.p50, 1.0), work.input_tokens.p95)
    tokens = constant("prompt_token_seconds") * prompt.mean
    return FrontEnd(
        request_seconds=(fixed + tokens) / speed,
        serial_seconds=constant("request_serial_seconds") / speed,
        prompt_ratio=constant("prompt_ratio"),
        held_steps=constant("held_steps"),
    )


def early_share(software_year: float | None) -> float:
    """1 for software of 2025, 0 for today's, which is what is meant where the year is not known."""
    if software_year is None:
        return 0.0
    share = (LATE_YEAR - software_year) / (LATE_YEAR - EARLY_YEAR)
    return min(max(share, 0.0), 1.0)
