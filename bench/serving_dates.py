"""When the software of a measured run was current."""

from __future__ import annotations

import re

from bench.tables import Row

MONTHS = {
    ("sglang", "0.5.1.post1"): "2025-08",
    ("sglang", "0.5.6.post2"): "2026-01",
    ("sglang", "0.5.8.post1"): "2026-02",
    ("sglang", "0.5.9"): "2026-03",
    ("sglang", "nightly-dev"): "2026-03",
    ("trtllm", "1.0.0rc3"): "2025-07",
    ("vllm", "0.12.0"): "2026-01",
}
"""Of releases by which undated rows name their engine: the month around which dated rows of the
same table ran it, and for two that no dated row ran (SGLang 0.5.1.post1, TensorRT-LLM 1.0.0rc3)
that of the release."""


def software_year(row: Row) -> float | None:
    """As a decimal year, by the run's date or else its engine's release; None for neither."""
    release = row.get("engine", ""), row.get("engine_version", "")
    date = row.get("source_date") or MONTHS.get(release, "")
    found = re.match(r"(\d{4})-(\d\d)", date)
    return int(found[1]) + (int(found[2]) - 0.5) / 12 if found else None
