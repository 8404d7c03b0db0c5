"""Models that a table names without a shape: what their counts or their benchmark tell of them."""

from __future__ import annotations

import re
from dataclasses import replace

from bench.tables import Row, number
from poolwise.errors import InvalidInput
from poolwise.model import presets
from poolwise.model.mixtures import usual_experts
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.tables import Tables
from poolwise.tables.reading import fold

HEAD_WIDTH = 128
WIDTH_STEP = 8 * HEAD_WIDTH
WIDTH_PER_LAYER = 128
"""GPT-3's shapes of 6.7 B to 175 B parameters lie between 96 and 128 (arXiv 2005.14165)."""
VOCABULARY = 51200
SAMPLE_BYTES_PER_FLOP = 2e-4
"""Activations of a picture model by its FLOPs: ResNet-50 keeps about as much."""
PICTURE_FLOPS = {
    "stable-diffusion-v2": 0.76e12,
    "retinanet": 0.26e12,
}
"""By folded name. Forward, per sample of MLPerf Training: the U-Net on latents of 64 x 64
with text encoder, and ResNeXt50 with a pyramid on 800 x 800 pixels."""
SMALL_FLUX = 512 / 4608
"""MLPerf trains FLUX on pictures of 256 x 256 and 256 words: its tokens over those of a 1024 x 1024
picture with 512 words, which the shipped table counts."""


def model_of(row: Row, tables: Tables) -> Model | None:
    """The shipped shape, else a usual one with the row's counts; None without counts."""
    known = tables.model(row["model"])
    if known is not None:
        return _as_benchmarked(presets.model(known))
    counts = stated_counts(row) or _said_counts(row)
    if counts is None:
        return None
    total, active = counts
    flops = PICTURE_FLOPS.get(fold(row["model"]))
    if flops is not None:
        return Model(row["model"], Custom(total, total, flops, flops * SAMPLE_BYTES_PER_FLOP))
    return decoder(row["model"], total, active) if row["seq_len"] else None


def stated_counts(row: Row) -> tuple[float, float] | None:
    """All parameters and those that a token uses, by their columns, else by the model's name as in
    ``Some-30B-A3B``; None where neither tells.

    Raises InvalidInput for columns below 0: a width that follows from them has no real root.
    """
    total = number(row, "params_b")
    if total:
        active = number(row, "active_b") or total
        if total < 0.0 or active < 0.0:
            text = f"{total:.4g} billion and {active:.4g} active parameters are no count"
            raise InvalidInput(row["model"], text)
        return total * 1e9, active * 1e9
    named = _NAMED.search(row["model"])
    return (float(named[1]) * 1e9, float(named[2] or named[1]) * 1e9) if named else None


_NAMED = re.compile(
    r"(?:^|[-_\s])(\d+(?:\.\d+)?)b(?:-a(\d+(?:\.\d+)?)b)?(?![a-z0-9])", re.IGNORECASE
)


def _said_counts(row: Row) -> tuple[float, float] | None:
    """As in ``source title: Paxml GPT5B FP8``."""
    match = re.search(r"[A-Za-z]\s?(\d+(?:\.\d+)?)[Bb]\b", f"{row['model']} {row['notes']}")
    return (float(match[1]) * 1e9, float(match[1]) * 1e9) if match else None


def decoder(name: str, parameters: float, active_parameters: float) -> Model:
    """A decoder of GPT-3's proportions: ``12*L*h*h`` parameters used by each token, h near 128 L,
    and a multiple of what usual tensor-parallel sizes divide.
    """
    wanted = WIDTH_PER_LAYER * (active_parameters / (12 * WIDTH_PER_LAYER**2)) ** (1 / 3)
    hidden = WIDTH_STEP * max(1, round(wanted / WIDTH_STEP))
    layers = max(1, round(active_parameters / (12 * hidden**2)))
    is_sparse = active_parameters < presets.LEAST_DENSE * parameters
    experts = usual_experts(parameters, active_parameters, layers, hidden) if is_sparse else None
    shape = Transformer(
        layers=layers,
        hidden=hidden,
        ffn=4 * hidden,
        heads=hidden // HEAD_WIDTH,
        kv_heads=hidden // HEAD_WIDTH,
        head_dim=HEAD_WIDTH,
        vocab=VOCABULARY,
        gated_mlp=is_sparse,
        tied_embeddings=True,
        experts=experts,
    )
    return Model(
        name,
        shape,
        published_parameters=parameters,
        published_active_parameters=active_parameters,
    )


def _as_benchmarked(model: Model) -> Model:
    shape = model.shape
    if "FLUX" not in model.name.upper() or not isinstance(shape, Custom):
        return model
    small = replace(
        shape,
        forward_flops_per_sample=shape.forward_flops_per_sample * SMALL_FLUX,
        activation_bytes_per_sample=shape.activation_bytes_per_sample * SMALL_FLUX,
    )
    return replace(model, shape=small)
