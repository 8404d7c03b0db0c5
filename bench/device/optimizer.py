"""AdamW in mixed precision as Megatron-LM has it: a master copy in fp32 beside bf16 weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

LEARNING_RATE = 1e-5


class MixedAdamW:
    """Of weights in any precision; those in fp32 are their own master."""

    def __init__(self, weights: Iterable[Any]) -> None:
        self._weights = list(weights)
        self._masters = [_master(weight) for weight in self._weights]
        self._adam = torch.optim.AdamW(self._masters, lr=LEARNING_RATE, fused=True)

    def collect(self) -> None:
        """Add the gradients of a micro-batch up in fp32."""
        for weight, master in zip(self._weights, self._masters, strict=True):
            if weight is master or weight.grad is None:
                continue
            gradient = weight.grad.float()
            weight.grad = None
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)

    def step(self) -> None:
        """Step, and write the masters back."""
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        with torch.no_grad():
            for weight, master in zip(self._weights, self._masters, strict=True):
                if weight is not master:
                    weight.copy_(master)


def _master(weight: Any) -> Any:
    if weight.dtype is torch.float32:
        return weight
    return weight.detach().float().requires_grad_()
