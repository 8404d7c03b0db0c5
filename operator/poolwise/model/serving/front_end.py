"""What a request takes beside the steps that serve it: its engine's front end and prompt path.

Between a request's arrival and its first token lie the server (HTTP, tokeniser), the scheduler,
which takes new requests up between two steps and keeps a few in its pipeline, and a prompt's own
step, which most engines launch kernel by kernel, without a captured graph: sparse layers have many
small kernels, so each of them adds. The constants are fitted by engine (``bench.fit.requests``).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.work import ServingWork, Transformer

REQUESTS = "requests"
"""Phase of the constants."""
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
    layers = constant("prompt_layer_seconds") * transformer.sparse_layers(shape)
    return FrontEnd(
        request_seconds=(constant("request_seconds") + layers) / speed,
        serial_seconds=constant("request_serial_seconds") / speed,
        prompt_ratio=constant("prompt_ratio"),
        held_steps=constant("held_steps"),
    )
