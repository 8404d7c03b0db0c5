"""How a measured replica was laid out, from what the source says of it.

The continuous benchmark's table multiplies sizes that name the same devices: rows with the same
times appear as ``tp 8, moe_ep 8`` on 8 devices and as ``tp 64, moe_tp 8, moe_ep 8`` on 64, and
likewise with attention DP. So a square of two equal sizes is read as its side. A tensor-parallel
size beyond what engines divide a layer by is the number of devices of a rack that separates prompts
from tokens (SemiAnalysisAI/InferenceX, nvidia-master.yaml of December 2025: all recipes for GB200
are ``disagg: true``; 36 are 4 for prompts and 4 times 8 for tokens); it is read as attention DP on
all of them, without prompts in the way. Deployments that separate prompts from tokens are read by
their decoding part; where the number of its workers is blank (81 % of them), the requests on one
are a share of all, which is fitted (``worker_share``).

TensorRT-LLM's overview names a mixture of experts by its number of devices alone (``TP8``), and
says below its tables how all of them ran: with attention DP and expert parallelism
(docs/source/performance/perf-overview.md of v1.0, *For MoE models*). Rows carry that as a note.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.tables import Row, number, whole

TENSOR_SIZES = (1, 2, 4, 8, 16)
ATTENTION_DP_NOTE = "use attention dp"
"""In any case of letters."""
SHARE_OF_ONE_WORKER = 0.125
"""Where the fit starts: a round number."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """One replica, and how many of it there are."""

    tensor: int
    pipeline: int
    data: int
    expert: int
    in_flight: float
    """On one replica."""
    replicas: float
    shares: bool = False
    """Whether ``in_flight`` is :data:`SHARE_OF_ONE_WORKER` of all."""
    apart: bool = False
    """Whether prompts are read elsewhere."""


def sizes(row: Row) -> Sizes | str:
    """Of the replica that generates tokens; a reason where the row does not tell."""
    return _apart(row) if row["mode"] == "online-disagg" else _together(row)


def _together(row: Row) -> Sizes | str:
    stated_tensor = whole(row, "tp")
    if stated_tensor is None:
        return "no tensor-parallel size"
    tensor, data, expert = _split(row, stated_tensor)
    pipeline = whole(row, "pp") or 1
    clients = number(row, "concurrency") or (number(row, "batch_per_dp") or 1.0) * data
    stated = stated_tensor * (whole(row, "attn_dp") or 1) * pipeline
    replicas = max(1.0, (whole(row, "n_gpus") or 1) / stated)
    if row["mode"] in ("online-agg", "decode-bs1", "prefill-latency", "static-batch"):
        replicas = 1.0
    apart = data > 1 and data not in TENSOR_SIZES
    return Sizes(tensor, pipeline, data, expert, clients, replicas, apart=apart)


def _split(row: Row, tensor: int) -> tuple[int, int, int]:
    """Tensor, data and expert parallel sizes of an engine that does both halves."""
    if ATTENTION_DP_NOTE in row.get("notes", "").lower() and not row["attn_dp"]:
        return 1, tensor, tensor
    cut, whole_experts = whole(row, "moe_tp") or 1, whole(row, "moe_ep") or 1
    return _devices(tensor, whole(row, "attn_dp") or 1, cut, whole_experts)


def parts(text: str) -> Row:
    """Cells of ``workers=,tp=4,...`` by name."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _apart(row: Row) -> Sizes | str:
    stated = parts(row["decode_cfg"])
    cell = {name: whole(stated, name) for name in stated}
    clients, tensor = number(row, "concurrency"), cell.get("tp")
    if tensor is None:
        return "no sizes of the decoding part"
    workers, per_worker = cell.get("workers"), cell.get("bs")
    if clients is None and per_worker is None:
        return "no concurrency"
    tensor, data, expert = _devices(
        tensor, cell.get("dp") or 1, cell.get("moe_tp") or 1, cell.get("moe_ep") or 1
    )
    shares = clients is not None and not workers
    if clients is None:
        in_flight = float(per_worker or 1) * data
    else:
        in_flight = clients / workers if workers else clients * SHARE_OF_ONE_WORKER
    return Sizes(
        tensor, cell.get("pp") or 1, data, expert, max(1.0, in_flight), workers or 1.0, shares
    )


def _devices(tensor: int, data: int, cut: int, whole_experts: int) -> tuple[int, int, int]:
    """Tensor, data and expert parallel sizes that exist."""
    side = whole_experts
    if cut == side > 2 and tensor * data == side * side:
        return (1, side, side) if tensor == 1 else (side, 1, side)
    if tensor == data > 1 and whole_experts == tensor * data:
        return tensor, 1, tensor
    if tensor not in TENSOR_SIZES:
        return 1, tensor, tensor
    return tensor, data, min(whole_experts, tensor * data)
