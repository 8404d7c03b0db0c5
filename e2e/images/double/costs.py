"""How long one iteration takes.

A roofline in small: reading the weights costs the same whatever the batch (``base``), each sequence
that decodes reads its own KV cache (``sequence``, ``context_token``), each token of a prompt is
computed (``prefill_token``). So inter-token latency grows with the batch and with prompts that
share its iterations, as on a real engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

PREFIX = "DOUBLE_"


@dataclass(frozen=True)
class Costs:
    """Seconds; each is set by ``DOUBLE_`` and its name in capitals."""

    base_seconds: float = 0.010
    sequence_seconds: float = 0.0005
    prefill_token_seconds: float = 0.00002
    context_token_seconds: float = 0.0000002

    def iteration_seconds(self, decodes: int, prefill_tokens: int, context_tokens: int) -> float:
        """The time of one iteration."""
        return (
            self.base_seconds
            + self.sequence_seconds * decodes
            + self.prefill_token_seconds * prefill_tokens
            + self.context_token_seconds * context_tokens
        )


def from_environment(environment: Mapping[str, str]) -> Costs:
    """Read the costs; raises ValueError with one sentence."""
    given = {}
    for field in fields(Costs):
        name = f"{PREFIX}{field.name.upper()}"
        if text := environment.get(name):
            given[field.name] = number(name, text)
    return Costs(**given)


def number(name: str, text: str) -> float:
    """A number of seconds or tokens, at least 0."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name}={text}: must be a number") from None
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name}={text}: must be at least 0")
    return value
