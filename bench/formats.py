"""Number formats as sources spell them, by the names that the model has for them."""

from __future__ import annotations

import re

SPELLINGS = (
    ("nvfp4", r"nvfp4"),
    ("mxfp4", r"mxfp4"),
    ("int4", r"u?int4|w4|wna16|awq|gptq"),
    ("nvfp4", r"fp4"),
    ("fp8", r"fp8|float8|e4m3|e5m2"),
    ("int8", r"u?int8|w8|\bsq\b"),
    ("fp16", r"fp16|(?<!b)float16|\bhalf\b|\bf16"),
    ("bf16", r"bf16|bfloat16"),
    ("tf32", r"tf32"),
    ("fp32", r"fp32|float32|\bf32"),
    ("int4", r"(?<!\d)4[-_ ]?bit|nf4|\bq4_"),
    ("int8", r"(?<!\d)8[-_ ]?bit|\bq8_"),
    ("bf16", r"\bamp\b|mixed|(?<!\d)16[-_ ]?bit"),
)
"""What a format is spelt like. The first that is found names the whole: of a mixture (``fp8/bf16
mixed``, ``w4a16``) the shortest is the one that weights or products are in. Four bits of weights
beside others of activations are integers, unless a floating point of four bits is named. So are
bits alone, and 16 of them, mixed or not, are those that training runs in."""


def number_format(words: str) -> str:
    """The format that the words of a source mean; words that mean none come back in lower case.

    >>> number_format("FP8-CS"), number_format("int4-g32-wo"), number_format("fp16 (bf16 matmul)")
    ('fp8', 'int4', 'fp16')
    """
    label = words.strip().lower()
    return next((name for name, spelling in SPELLINGS if re.search(spelling, label)), label)
