"""Seconds and peak memory of one training step on this machine's accelerator."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from bench.device.decoders import DEVICE, decoder, has_fp32_weights
from bench.device.optimizer import MixedAdamW
from bench.device.results import Measured
from bench.device.workloads import Workload

WARM_UP_STEPS = 3
LEAST_STEPS, MOST_STEPS, LONG_ENOUGH_SECONDS = 5, 12, 2.0


def measured(workload: Workload) -> Measured:
    """Build it, warm it up, time it.

    Raises :class:`torch.OutOfMemoryError` where it does not fit.
    """
    step = _Step(workload)
    for _ in range(WARM_UP_STEPS):
        step()
    # Compiling leaves blocks behind that no step needs.
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    seconds = _seconds(step)
    return Measured(
        statistics.median(seconds),
        torch.cuda.max_memory_reserved(),
        torch.cuda.max_memory_allocated(),
    )


def _seconds(step: Callable[[], None]) -> list[float]:
    seconds: list[float] = []
    while len(seconds) < LEAST_STEPS or (
        len(seconds) < MOST_STEPS and sum(seconds) < LONG_ENOUGH_SECONDS
    ):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return seconds


class _Step:
    """Micro-batches of random tokens, then the optimizer."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._is_cast = has_fp32_weights(workload)
        self._model = decoder(workload)
        if workload.is_recomputed:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})
        self._loss: Callable[[Any, Any], Any] = _plain_loss
        if workload.is_compiled:
            for layer in _decoder(self._model).layers:
                layer.compile()
            self._loss = _compiled_loss
        trained = (each for each in self._model.parameters() if each.requires_grad)
        self._optimizer = MixedAdamW(trained)
        self._vocabulary = self._model.config.vocab_size

    def __call__(self) -> None:
        for _ in range(self._workload.micro_batches):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=self._is_cast):
                loss = self._loss(self._model, self._tokens())
            (loss / self._workload.micro_batches).backward()
            self._optimizer.collect()
        self._optimizer.step()

    def _tokens(self) -> Any:
        size = (self._workload.micro_batch_size, self._workload.sequence_tokens)
        return torch.randint(self._vocabulary, size, device=DEVICE)


def _plain_loss(model: Any, tokens: Any) -> Any:
    return model(input_ids=tokens, labels=tokens).loss


def _compiled_loss(model: Any, tokens: Any) -> Any:
    hidden = _decoder(model)(input_ids=tokens).last_hidden_state
    return _fused_loss(hidden, model.get_output_embeddings().weight, tokens)


def _next_token_loss(hidden: Any, weight: Any, tokens: Any) -> Any:
    logits = functional.linear(hidden[:, :-1], weight)
    return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


_fused_loss = torch.compile(_next_token_loss)
"""Compiled, so that no copy of the logits in fp32 is kept."""


def _decoder(model: Any) -> Any:
    """Without the head, and inside what adapters wrap around it."""
    causal = model.get_base_model() if hasattr(model, "peft_config") else model
    return causal.base_model
