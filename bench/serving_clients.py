"""How the clients of measured runs send, as far as rows tell.

The continuous benchmark draws lengths, so its clients drift apart and their requests come one by
one. Runs of other origin carry no date, and their clients send equal lengths: where an engine lets
prompts go first (SGLang), they stay in step, so that prompts wait for one another. How far shows in
first tokens (``in_step_share``, which is fitted). In one sweep, whose lengths are powers of two
(Qwen3-32B), tokens show it as well: all send together, each prompt has half of the others before it
and half behind it, and only those behind it delay its tokens. In the other one, whose lengths are
round in thousands, all prompts delay them, as if its clients began apart.
"""

from __future__ import annotations

from bench.tables import Row, number, whole

DRAWN_LENGTHS = frozenset({(1024, 1024), (1024, 8192), (8192, 1024)})
"""Prompt and output tokens of the continuous benchmark (``.github/configs``): at most so many."""
BEFORE = 0.5
"""Share of the other clients' prompts that are read before one's own, of clients in step."""


def draws_lengths(row: Row) -> bool:
    """Whether a run is of the continuous benchmark."""
    return bool(row.get("source_date")) or lengths(row) in DRAWN_LENGTHS


def lengths(row: Row) -> tuple[float | None, float | None]:
    """Prompt and output tokens."""
    return number(row, "isl"), number(row, "osl")


def stays_in_step(row: Row, engine: str) -> bool:
    """Whether equal lengths keep clients in step, so that prompts wait for those of others."""
    return engine == "sglang" and row["mode"] == "online-agg" and not draws_lengths(row)


def sends_together(row: Row, engine: str) -> bool:
    """Whether all clients in step send at once."""
    stated = whole(row, "isl"), whole(row, "osl")
    are_powers = all(each is not None and each & (each - 1) == 0 for each in stated)
    return are_powers and stays_in_step(row, engine)
