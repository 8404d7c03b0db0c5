"""Rows of ``serve_measured`` as questions to aiconfigurator's single-point estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bench.rivals.checkpoints import Checkpoint, checkpoint
from bench.tables import Row, whole

SOURCE: Final = "aiconfigurator silicon_sample"
MODES: Final = ("online-agg", "online-disagg")
SYSTEMS: Final = {
    "B200-SXM-180GB": "b200_sxm",
    "B300-SXM": "b300_sxm",
    "GB200-NVL72": "gb200",
    "GB300-NVL72": "gb300",
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200_sxm",
}
LAYOUT: Final = ("tp", "attn_dp", "moe_tp", "moe_ep")
NODE: Final = 8
"""Accelerators of a node of all systems but these."""
RACKS: Final = ("GB200-NVL72", "GB300-NVL72")
DENSE: Final = ("Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-32B")
Keyword = str | int


@dataclass(frozen=True, slots=True)
class Worker:
    """One engine instance, and how many of them there are."""

    tensor: int
    pipeline: int
    data: int
    moe_tensor: int
    moe_expert: int
    batch: int
    """Requests in flight on each data-parallel rank."""
    count: int = 1

    def keywords(self) -> dict[str, int]:
        """As ``cli_estimate`` names them."""
        return {
            "tp_size": self.tensor,
            "pp_size": self.pipeline,
            "attention_dp_size": self.data,
            "moe_tp_size": self.moe_tensor,
            "moe_ep_size": self.moe_expert,
            "batch_size": self.batch,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """One point; rows that differ only in what aiconfigurator does not ask share it."""

    checkpoint: Checkpoint
    system: str
    backend: str
    prompt_tokens: int
    output_tokens: int
    workers: tuple[Worker, ...]
    """One, or the prefill and the decode instances."""

    def keywords(self) -> dict[str, Keyword]:
        """All that ``cli_estimate`` is told, but model path and tables."""
        common: dict[str, Keyword] = {
            "system_name": self.system,
            "backend_name": self.backend,
            "isl": self.prompt_tokens,
            "osl": self.output_tokens,
        }
        if len(self.workers) == 1:
            return common | {"mode": "agg"} | self.workers[0].keywords()
        prefill, decode = self.workers
        return (
            common
            | {"mode": "disagg"}
            | _prefixed("prefill", prefill)
            | _prefixed("decode", decode)
        )


def wanted(rows: Iterable[Row]) -> list[Row]:
    """The rows of aiconfigurator's own published sample."""
    return [row for row in rows if row["source"].startswith(SOURCE) and row["mode"] in MODES]


def question(row: Row) -> Question | str:
    """What to ask for ``row``, or the reason why it cannot be asked."""
    found, system = checkpoint(row), SYSTEMS.get(row["gpu"])
    prompt, output = whole(row, "isl"), whole(row, "osl")
    if found is None:
        return "no checkpoint of this model and precision"
    if system is None:
        return "no tables for this accelerator"
    if prompt is None or output is None:
        return "lengths not stated"
    workers = _aggregated(row) if row["mode"] == "online-agg" else _disaggregated(row)
    if isinstance(workers, str):
        return workers
    return Question(found, system, row["engine"], prompt, output, workers)


def _aggregated(stated: Row) -> tuple[Worker, ...] | str:
    row = _counted_once(stated)
    batch, clients = whole(row, "batch_per_dp"), whole(row, "concurrency")
    if not batch and not clients:
        return "load not stated"
    tensor, data = _attention(row, batch, clients)
    shared = math.ceil(clients / data) if clients else batch
    worker = Worker(
        tensor,
        whole(row, "pp") or 1,
        data,
        *_experts(row, tensor * data),
        min(batch or shared or 1, shared or 1),
    )
    return (worker,)


def _counted_once(row: Row) -> Row:
    """Every aggregated row that is wider than its node states n * n accelerators, the tensor- times
    the expert-parallel size of the same n, which is what this reads."""
    tensor, data, moe_tensor, moe_expert = (whole(row, name) or 1 for name in LAYOUT)
    width = tensor * data
    side = math.isqrt(width)
    twice = side * side == width == moe_tensor * moe_expert and side in (tensor, moe_tensor)
    if width <= NODE or row["gpu"] in RACKS or not twice:
        return row
    attention = ("1", str(side)) if data > 1 else (str(side), "1")
    sizes = dict(zip(LAYOUT, (*attention, "1", str(side)), strict=True))
    return row | sizes | {"batch_per_dp": ""}


def _attention(row: Row, batch: int | None, clients: int | None) -> tuple[int, int]:
    """Tensor- and data-parallel sizes of attention. TensorRT-LLM's rows with attention data
    parallelism leave it blank and state the whole as ``tp``: the load of a rank tells it."""
    tensor, data = whole(row, "tp") or 1, whole(row, "attn_dp")
    if data or row["model"] in DENSE or not batch or not clients or clients % batch:
        return tensor, data or 1
    told = clients // batch
    return (tensor // told, told) if tensor % told == 0 else (tensor, 1)


def _experts(row: Row, width: int) -> tuple[int, int]:
    """Of the experts; dense models state 0, 1 or ``tp``, and aiconfigurator does not look."""
    if row["model"] in DENSE:
        return width, 1
    return whole(row, "moe_tp") or 1, whole(row, "moe_ep") or 1


def _disaggregated(row: Row) -> tuple[Worker, ...] | str:
    phases = [_cells(row[name]) for name in ("prefill_cfg", "decode_cfg")]
    if not all(whole(cells, "workers") and whole(cells, "bs") for cells in phases):
        return "number of instances not stated"
    return tuple(_instance(row, cells) for cells in phases)


def _instance(row: Row, cells: Row) -> Worker:
    tensor, data, pipeline = (whole(cells, name) or 1 for name in ("tp", "dp", "pp"))
    experts = _experts(row | cells, tensor * data)
    batch, count = (whole(cells, name) or 1 for name in ("bs", "workers"))
    return Worker(tensor, pipeline, data, *experts, batch, count)


def _cells(configuration: str) -> Row:
    """``workers=1,bs=2,tp=4`` and so on."""
    return dict(part.split("=", 1) for part in configuration.split(","))


def _prefixed(phase: str, worker: Worker) -> dict[str, Keyword]:
    named: dict[str, Keyword] = {
        f"{phase}_{key}": value for key, value in worker.keywords().items()
    }
    return named | {f"{phase}_num_workers": worker.count}
