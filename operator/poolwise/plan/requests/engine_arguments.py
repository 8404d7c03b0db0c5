"""What a user's own flags say of a replica: they win over the spec, as they do over the plan.

The engine is given them in place of what the plan sets (:func:`without_overridden`). A plan that
did not read them would predict another replica than the one that starts: with four accelerators
asked of a pod that has two the engine ends at once, and an fp8 cache holds twice as many sequences.

Rules are the engines' own: vLLM 0.29 (``vllm serve --help``), SGLang 0.5 (server_arguments.md), TGI
3.3 (launcher reference).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolwise.errors import InvalidInput
from poolwise.plan.children.engines import flag_of, flags_of

FIELD = "spec.engine.args"
SIXTEEN_BIT, FP8 = "bf16", "fp8"
SIZE = re.compile("[1-9][0-9]{0,4}")
TOKENS = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?)(?P<factor>[kKmM]?)")
FACTORS = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}
FRACTION = re.compile(r"[0-9]{0,9}\.?[0-9]{1,9}")
ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {
        "tensor": ("-tp",),
        "pipeline": ("-pp",),
        "data": ("--data-parallel-size", "-dp"),
        "quantization": ("-q",),
    },
    "sglang": {
        "tensor": ("--tp", "--tensor-parallel-size"),
        "pipeline": ("--pp", "--pipeline-parallel-size"),
        "data": ("--dp-size", "--dp", "--data-parallel-size"),
        "memory_fraction": ("--mem-fraction-static",),
    },
    "tgi": {"memory_fraction": ("--cuda-memory-fraction",)},
}
"""Other spellings of the flags that the plan sets, and flags that it never sets."""
SHARING_GROUPS = "--enable-dp-attention"
"""With which SGLang's groups share the accelerators of ``tensor`` instead of having their own."""


@dataclass(frozen=True, slots=True)
class EngineArguments:
    """What flags say; None: nothing."""

    tensor: int | None = None
    pipeline: int | None = None
    max_model_tokens: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    memory_fraction: float | None = None
    """Of each accelerator, what the engine may take."""
    quantization: str | None = None
    kv_format: str = SIXTEEN_BIT


def read_arguments(arguments: Sequence[str], engine: str) -> EngineArguments:
    """Raises InvalidInput for a size or a fraction that the engine would not start with, and for
    groups that each want accelerators of their own: replicas are those.

    Of numbers of tokens an engine understands more than digits (``auto``, in vLLM ``8k`` and
    ``8K``), and of formats more than tell the size of a weight (``awq``): what is not read here is
    left to it.
    """
    given = flags_of(arguments)
    _, kv_format = _given(engine, "kv_format", given)
    _, weights = _given(engine, "quantization", given)
    is_fp8 = (kv_format or "").startswith("fp8")  # in several variants, all of one byte
    told = EngineArguments(
        tensor=_size(engine, "tensor", given),
        pipeline=_size(engine, "pipeline", given),
        max_model_tokens=_tokens(_given(engine, "max_model_tokens", given)[1]),
        max_num_seqs=_tokens(_given(engine, "max_num_seqs", given)[1]),
        max_batched_tokens=_tokens(_given(engine, "max_batched_tokens", given)[1]),
        memory_fraction=_fraction(engine, given),
        quantization=FP8 if weights == FP8 else None,
        kv_format=FP8 if is_fp8 else SIXTEEN_BIT,
    )
    _check_groups(engine, given)
    _check_step(engine, told)
    return told


def _check_groups(engine: str, given: Mapping[str, str]) -> None:
    groups = _size(engine, "data", given) or 1
    if groups > 1 and SHARING_GROUPS not in given:
        flag, _ = _given(engine, "data", given)
        told = "since Poolwise scales replicas instead of groups inside one"
        raise InvalidInput(FIELD, f"{flag} must be 1, {told}, is {groups}")


def _check_step(engine: str, told: EngineArguments) -> None:
    """vLLM does not start where a step is too small for a token of each sequence."""
    sequences, tokens = told.max_num_seqs, told.max_batched_tokens
    if engine != "vllm" or sequences is None or tokens is None or sequences <= tokens:
        return
    flag, other = flag_of(engine, "max_batched_tokens"), flag_of(engine, "max_num_seqs")
    raise InvalidInput(FIELD, f"{flag} must be at least {other} ({sequences}), is {tokens}")


def _given(engine: str, what: str, given: Mapping[str, str]) -> tuple[str, str | None]:
    """The flag that says it, and its value; None where there is none. A variable of the pod's
    environment is filled in when it starts, and nobody knows it here."""
    usual = flag_of(engine, what)
    spelled = [flag for flag in (usual, *ALIASES.get(engine, {}).get(what, ())) if flag]
    for flag in spelled:
        if flag in given and "$(" not in given[flag]:
            return flag, given[flag]
    return usual, None


def _size(engine: str, what: str, given: Mapping[str, str]) -> int | None:
    flag, text = _given(engine, what, given)
    if text is None:
        return None
    if not SIZE.fullmatch(text):
        told = f"{flag} must be a whole number from 1 to 99,999, is {text or 'empty'}"
        raise InvalidInput(FIELD, told)
    return int(text)


def _tokens(text: str | None) -> int | None:
    found = TOKENS.fullmatch(text or "")
    if not found:
        return None
    return int(float(found["number"]) * FACTORS[found["factor"]]) or None


def _fraction(engine: str, given: Mapping[str, str]) -> float | None:
    flag, text = _given(engine, "memory_fraction", given)
    if text is None:
        return None
    if not FRACTION.fullmatch(text) or not 0.0 < float(text) <= 1.0:
        raise InvalidInput(FIELD, f"{flag} must be above 0 and at most 1, is {text or 'empty'}")
    return float(text)
