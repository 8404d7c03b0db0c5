"""What a user's own flags say of a replica: they win over the spec, as they do over the plan.

The engine is given them in place of what the plan sets (:func:`without_overridden`). A plan that
did not read them would predict another replica than the one that starts: with four accelerators
asked of a pod that has two the engine ends at once, and an fp8 cache holds twice as many sequences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolwise.errors import InvalidInput
from poolwise.plan.children.engines import flag_of, flags_of

FIELD = "spec.engine.args"
SIXTEEN_BIT = "bf16"
SIZE = re.compile("[1-9][0-9]{0,4}")
TOKENS = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?)(?P<factor>[kKmM]?)")
FACTORS = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}
ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {"tensor": ("-tp",), "pipeline": ("-pp",)},
    "sglang": {
        "tensor": ("--tp", "--tensor-parallel-size"),
        "pipeline": ("--pp", "--pipeline-parallel-size"),
    },
}
"""Other spellings of the flags that the plan sets."""


@dataclass(frozen=True, slots=True)
class EngineArguments:
    """What flags say; None: nothing."""

    tensor: int | None = None
    pipeline: int | None = None
    max_model_tokens: int | None = None
    kv_format: str = SIXTEEN_BIT


def read_arguments(arguments: Sequence[str], engine: str) -> EngineArguments:
    """Raises InvalidInput for a size of parallelism that is no whole number above 0.

    Of the longest context an engine understands more than a number (``auto``, in vLLM ``8k`` and
    ``8K``): what is not read here is left to it.
    """
    given = flags_of(arguments)
    _, kv_format = _given(engine, "kv_format", given)
    is_fp8 = (kv_format or "").startswith("fp8")  # in several variants, all of one byte
    return EngineArguments(
        tensor=_size(engine, "tensor", given),
        pipeline=_size(engine, "pipeline", given),
        max_model_tokens=_tokens(_given(engine, "max_model_tokens", given)[1]),
        kv_format="fp8" if is_fp8 else SIXTEEN_BIT,
    )


def _given(engine: str, what: str, given: Mapping[str, str]) -> tuple[str, str | None]:
    """The flag that says it, and its value; None where there is none. A variable of the pod's
    environment is filled in when it starts, and nobody knows it here."""
    usual = flag_of(engine, what)
    for flag in (usual, *ALIASES.get(engine, {}).get(what, ())):
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
