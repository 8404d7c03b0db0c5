"""Which checkpoint a row ran, named as aiconfigurator knows it.

The shapes are the ``config.json`` files that aiconfigurator ships. Formats of which it ships no
checkpoint are written as the publishers of such checkpoints write them, on top of its own shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.tables import Row


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A shape that aiconfigurator ships, and a format that it ships no checkpoint of."""

    shape: str
    format: str = ""

    def path(self, shapes: Path, folder: Path) -> str:
        """What to pass as ``model_path``; a format of ours is written under ``folder``."""
        if not self.format:
            return self.shape
        written = folder / f"{self.shape.replace('/', '--')}--{self.format}"
        written.mkdir(exist_ok=True)
        _write(written, shapes / f"{self.shape.replace('/', '--')}_config.json", self.format)
        return str(written)


BLOCKS: Final = {
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "quant_method": "fp8",
    "weight_block_size": [128, 128],
}
"""As in Qwen3-32B-FP8."""
MODELOPT: Final = {"fp8": "FP8", "nvfp4": "NVFP4"}
"""As in Llama-3.1-70B-Instruct-FP8 and DeepSeek-V3.1-NVFP4: with a cache of 8 bits."""

LLAMA_8B: Final = "meta-llama/Meta-Llama-3.1-8B"
LLAMA_70B: Final = "meta-llama/Meta-Llama-3.1-70B"
QWEN_32B: Final = "Qwen/Qwen3-32B"
QWEN_397B: Final = "Qwen/Qwen3.5-397B-A17B"
KNOWN: Final[Mapping[tuple[str, str], Checkpoint]] = {
    ("DeepSeek-V3", "fp8"): Checkpoint("deepseek-ai/DeepSeek-R1"),
    ("DeepSeek-V3", "nvfp4"): Checkpoint("nvidia/DeepSeek-V3.1-NVFP4"),
    ("GLM-5", "fp8"): Checkpoint("zai-org/GLM-5-FP8"),
    ("GLM-5", "nvfp4"): Checkpoint("nvidia/GLM-5-NVFP4"),
    ("Llama-3.1-70B", "fp8"): Checkpoint("nvidia/Llama-3.1-70B-Instruct-FP8"),
    ("Llama-3.1-70B", "nvfp4"): Checkpoint(LLAMA_70B, "nvfp4"),
    ("Llama-3.1-8B", ""): Checkpoint(LLAMA_8B),
    ("Llama-3.1-8B", "fp8"): Checkpoint(LLAMA_8B, "fp8"),
    ("Llama-3.1-8B", "fp8_block"): Checkpoint(LLAMA_8B, "fp8_block"),
    ("MiniMax-M2.5", "fp8"): Checkpoint("MiniMaxAI/MiniMax-M2.5"),
    ("MiniMax-M2.5", "nvfp4"): Checkpoint("nvidia/MiniMax-M2.5-NVFP4"),
    ("Qwen3-32B", ""): Checkpoint(QWEN_32B),
    ("Qwen3-32B", "fp8"): Checkpoint(f"{QWEN_32B}-FP8-Static-PerTensor"),
    ("Qwen3-32B", "fp8_block"): Checkpoint(f"{QWEN_32B}-FP8"),
    ("Qwen3-32B", "nvfp4"): Checkpoint(QWEN_32B, "nvfp4"),
    ("Qwen3.5-397B-A17B", "bf16"): Checkpoint(QWEN_397B),
    ("Qwen3.5-397B-A17B", "fp8"): Checkpoint(QWEN_397B, "fp8_block"),
    ("Qwen3.5-397B-A17B", "nvfp4"): Checkpoint(f"nvidia/{QWEN_397B.split('/')[1]}-NVFP4"),
    ("gpt-oss-120b", "nvfp4"): Checkpoint("openai/gpt-oss-120b"),
}
"""By model and ``weight_precision`` of the row. gpt-oss is published in MXFP4 alone, which the rows
call nvfp4. DeepSeek-V3 and -R1 have one shape, and their FP8 checkpoints one format of blocks."""


def checkpoint(row: Row) -> Checkpoint | None:
    """The checkpoint of ``row``, or None for a model or format that has none here."""
    return KNOWN.get((row["model"], row["weight_precision"]))


def _write(folder: Path, shape: Path, form: str) -> None:
    config = json.loads(shape.read_text(encoding="utf-8"))
    if form in MODELOPT:
        quantization = {"quant_algo": MODELOPT[form], "kv_cache_quant_algo": "FP8"}
        _dump(folder / "hf_quant_config.json", {"quantization": quantization})
    else:
        config["quantization_config"] = BLOCKS
    _dump(folder / "config.json", config)


def _dump(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
