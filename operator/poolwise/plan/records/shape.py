"""A layout as users and other tools read it: the JSON ``shape`` of reports, status and records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from poolwise.model.work import ServingLayout, TrainingLayout

Layout = TrainingLayout | ServingLayout

UNQUANTISED = ("bf16", "fp16", "fp32")
"""Formats that weights have when nothing quantises them."""

_TRAINING = {
    "data": "data",
    "tensor": "tensor",
    "pipeline": "pipeline",
    "expert": "expert",
    "context": "context",
    "zeroStage": "zero_stage",
    "microBatchSize": "micro_batch_size",
    "recompute": "recompute",
}
_SERVING = {
    "tensor": "tensor",
    "pipeline": "pipeline",
    "expert": "expert",
    "weightFormat": "weight_format",
    "kvCacheFormat": "kv_format",
    "maxNumSeqs": "max_num_seqs",
    "maxModelLength": "max_model_tokens",
    "maxBatchedTokens": "max_batched_tokens",
    "cpuCores": "cpu_cores",
    "memoryBytes": "cpu_memory_bytes",
}
_CPU_ONLY = ("cpuCores", "memoryBytes")
_MAY_BE_ZERO = ("zeroStage", *_CPU_ONLY)

_training_adapter = TypeAdapter(TrainingLayout)
_serving_adapter = TypeAdapter(ServingLayout)


def shape(layout: Layout) -> dict[str, Any]:
    """The JSON form; what has no meaning for this layout is absent.

    >>> shape(ServingLayout(tensor=2))["quantization"]
    'None'
    """
    keys = _keys(layout)
    figures = {key: whole(getattr(layout, attribute)) for key, attribute in keys.items()}
    if isinstance(layout, TrainingLayout):
        return figures | {"recompute": layout.recompute.value}
    if layout.kv_format in UNQUANTISED:
        del figures["kvCacheFormat"]
    if not layout.cpu_cores:
        figures = {key: value for key, value in figures.items() if key not in _CPU_ONLY}
    return figures | {"quantization": quantization(layout.weight_format)}


def whole(value: Any) -> Any:
    """A float without a fraction as the integer that it is, so that equal values read alike."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def quantization(weight_format: str) -> str:
    """The API's word for a format of the weights."""
    return "None" if weight_format in UNQUANTISED else weight_format


def training_layout(document: Mapping[str, Any]) -> TrainingLayout:
    """The layout behind a shape; ValueError where it is none."""
    layout = _training_adapter.validate_python(_attributes(document, _TRAINING))
    _check_range(shape(layout))
    return layout


def serving_layout(document: Mapping[str, Any]) -> ServingLayout:
    """The layout behind a shape; ValueError where it is none."""
    layout = _serving_adapter.validate_python(_attributes(document, _SERVING))
    _check_range(shape(layout))
    return layout


def _keys(layout: Layout) -> dict[str, str]:
    return _TRAINING if isinstance(layout, TrainingLayout) else _SERVING


def _attributes(document: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    return {keys[key]: document[key] for key in keys if key in document}


def _check_range(document: Mapping[str, Any]) -> None:
    for key, value in document.items():
        least = 0 if key in _MAY_BE_ZERO else 1
        if not isinstance(value, str) and not least <= value < math.inf:
            raise ValueError(f"{key} is {value}, and cannot be below {least}")
