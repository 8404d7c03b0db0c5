"""What was measured, in the columns of the published tables."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from bench.columns import GIB
from bench.device.results import Measured, Timed
from bench.device.workloads import Workload
from poolwise.model.work import Method

SOURCE = "Poolwise, python -m bench.device"
LICENCE = "Apache-2.0"

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Where:
    """The machine and the day."""

    accelerator: str
    """By the name of the shipped tables."""
    device: str
    """As the driver calls it."""
    torch_version: str
    date: str
    """``2026-11``."""


def training_record(workload: Workload, found: Measured, where: Where) -> Record:
    """A row of ``train_measured``."""
    samples = workload.micro_batch_size * workload.micro_batches
    rate = samples * workload.sequence_tokens / found.step_seconds
    how = "compiled" if workload.is_compiled else "eager"
    task = "lora" if workload.method is Method.LORA else "pretrain"
    return _identified(
        "D",
        {
            "source": SOURCE,
            "source_date": where.date,
            "licence": LICENCE,
            "framework": f"PyTorch {where.torch_version}, {how}",
            "task": task,
            "model": workload.model,
            "gpu": where.accelerator,
            "n_gpus": 1,
            "seq_len": workload.sequence_tokens,
            "global_batch": samples,
            "micro_batch": workload.micro_batch_size,
            "grad_accum": workload.micro_batches,
            "precision": "bf16",
            **dict.fromkeys(("tp", "pp", "cp", "dp"), 1),
            "sharding": "none",
            "act_ckpt": "full" if workload.is_recomputed else "none",
            "layers_used": workload.layers or "",
            "step_time_s": f"{found.step_seconds:.5g}",
            "tokens_per_s": f"{rate:.6g}",
            "tokens_per_s_per_gpu": f"{rate:.6g}",
            "peak_mem_gib": f"{found.reserved_bytes / GIB:.2f}",
            "group": f"device|{where.accelerator}|{workload.model}|{task}",
            "notes": f"allocated {found.allocated_bytes / GIB:.2f} GiB; {where.device}",
        },
    )


def kernel_record(kernel: Timed, where: Where) -> Record:
    """A row of ``kernels_measured``."""
    columns = kernel.columns
    return _identified(
        "E",
        {
            "source": SOURCE,
            "licence": LICENCE,
            "gpu": where.accelerator,
            "device_string": where.device,
            "engine": "pytorch",
            "engine_version": where.torch_version,
            **columns,
            "latency_us": f"{kernel.seconds * 1e6:.5g}",
            "group": f"{where.accelerator}|{columns['op']}|pytorch|{columns['dtype']}",
        },
    )


def _identified(letter: str, record: Record) -> Record:
    """By a hash of all that it says, as the published tables do."""
    return {"row_id": f"{letter}{zlib.crc32(repr(sorted(record.items())).encode()):08x}", **record}
