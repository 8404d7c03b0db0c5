"""Number formats by their many spellings."""

from __future__ import annotations

import pytest

from bench.formats import number_format

SPELT = {
    "bf16": ("bf16", "BF16", "bfloat16", "bf16-mixed", "torch.bfloat16", "AMP",
             "16-mixed", "16bit"),
    "fp16": ("fp16", "float16", "half", "fp16 (bf16 matmul)", "f16", "fp16 mixed"),
    "tf32": ("tf32", "TF32"),
    "fp32": ("fp32", "float32"),
    "fp8": ("fp8", "FP8-DS", "fp8-cs", "mxfp8", "fp8_block", "fp8_e4m3", "fp8/bf16 mixed", "e5m2",
            "fp8_w8a8"),
    "int8": ("int8", "int8-wo", "w8a8", "w8a16", "sq", "8bit", "Q8_0"),
    "int4": ("int4", "uint4", "int4-g32-wo", "w4a16", "awq", "int4-awq", "gptq", "w4afp8",
             "wna16", "nf4", "bnb-4bit", "q4_k_m"),
    "nvfp4": ("nvfp4", "NVFP4", "fp4", "w4a4_nvfp4"),
    "mxfp4": ("mxfp4", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"), [(each, name) for name, every in SPELT.items() for each in every]
)
def test_a_format_is_known_by_its_spellings(words: str, expected: str) -> None:
    assert number_format(words) == expected


@pytest.mark.parametrize("words", ["", "posit16", "see submission"])
def test_words_that_name_no_format_come_back(words: str) -> None:
    assert number_format(f" {words.upper()} ") == words
