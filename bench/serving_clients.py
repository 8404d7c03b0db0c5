"""How the clients of measured runs send, as far as rows tell.

The continuous benchmark draws lengths, so its clients drift apart and their requests come one by
one. Runs of other origin carry no date, and their clients send equal lengths. Where an engine lets
prompts go first (SGLang), such clients stay in step: all of them send together, and each prompt has
half of the others before it and half behind it. Rows of one sweep alone show it, whose lengths are
powers of two (Qwen3-32B); in one whose lengths are round in thousands first tokens come three times
as early as they then would.
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
    """Whether all clients send together, and go on so."""
    if engine != "sglang" or row["mode"] != "online-agg" or draws_lengths(row):
        return False
    stated = whole(row, "isl"), whole(row, "osl")
    return all(each is not None and each & (each - 1) == 0 for each in stated)
