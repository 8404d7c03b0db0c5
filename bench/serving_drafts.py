"""Runs of the continuous benchmark with multi-token prediction, which its rows do not label.

From the record of the benchmark itself (SemiAnalysisAI/InferenceX, the history of
``.github/configs/nvidia-master.yaml`` and ``perf-changelog.yaml``): the recipes of DeepSeek on
TensorRT-LLM with ``spec-decoding: mtp`` are known by their day (pull request 392) and then by a
release that no other recipe has (632 and 642). Their scripts guess three tokens, or one under
attention DP. SGLang has such recipes too (626, 898), but most share release, day and layout with
those without, and what is known of the others does not follow this law: they stay as they are.
"""

from __future__ import annotations

from bench.tables import Row, number

MODEL, ENGINE = "DeepSeek-V3", "trtllm"
FIRST_RELEASE, FIRST_DAY = "1.1.0rc2.post2", "2026-01-14"
LATER_RELEASE = "1.2.0rc6.post3"


def drafts(row: Row) -> int:
    """Guessed tokens a step, by the recipe's script; 0 without prediction."""
    if (row["model"], row["engine"], row["mode"]) != (MODEL, ENGINE, "online-agg"):
        return 0
    release, day = row.get("engine_version", ""), row.get("source_date", "")
    if release != LATER_RELEASE and (release, day) != (FIRST_RELEASE, FIRST_DAY):
        return 0
    return 1 if (number(row, "attn_dp") or 1.0) > 1.0 else 3
