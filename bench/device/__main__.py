"""``python -m bench.device --out DIR``: measure training and kernels on this machine's accelerator.

Writes tables that ``python -m bench.model --data DIR`` scores, after each workload anew, so that
what was measured before the time ran out is kept. PyTorch, transformers and peft are not among the
project's packages: install those that fit your driver.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.device.isolated import NotMeasured, isolated  # isort: skip  # before PyTorch, for what it sets
import torch

from bench.columns import GIB
from bench.device import kernels, training
from bench.device.records import Record, Where, kernel_record, training_record
from bench.device.workloads import WORKLOADS
from bench.files import BadInput
from bench.names import with_known_names
from bench.programs import ends_on_bad_input
from bench.tables import write
from poolwise.tables import load

MOST_SECONDS = 90.0
"""Of one workload, compiling included."""


@ends_on_bad_input
def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--seconds", type=float, default=900.0, help="begin nothing after (900)")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + asked.seconds
    where = _where()
    _kernels(asked.out, where)
    _trainings(asked.out, where, end)


def _where() -> Where:
    try:
        name, total_bytes = isolated(_device, limit_seconds=MOST_SECONDS)
    except NotMeasured as why:
        raise BadInput(f"no accelerator to measure: {why}") from why
    row = load().accelerator(next(with_known_names([{"gpu": name}]))["gpu"])
    if row is None:
        raise BadInput(f"{name}: is no accelerator of the shipped tables")
    print(f"{name}: {row.name}, the driver exposes {total_bytes / GIB:.2f} GiB", flush=True)
    return Where(row.name, name, torch.__version__, datetime.now(UTC).strftime("%Y-%m"))


def _device() -> tuple[str, int]:
    """Name and bytes of memory, as the driver tells them."""
    return torch.cuda.get_device_name(), torch.cuda.mem_get_info()[1]


def _kernels(folder: Path, where: Where) -> None:
    try:
        found = isolated(kernels.timed, limit_seconds=MOST_SECONDS)
    except NotMeasured as why:
        print(f"kernels: {why}", flush=True)
        return
    write(folder, "kernels_measured", [kernel_record(each, where) for each in found])
    print(f"{len(found)} kernels", flush=True)


def _trainings(folder: Path, where: Where, end: float) -> None:
    records: list[Record] = []
    for workload in WORKLOADS:
        left = end - time.monotonic()
        if left <= 0.0:
            break
        try:
            found = isolated(training.measured, workload, limit_seconds=min(left, MOST_SECONDS))
        except NotMeasured as why:
            print(f"{workload}: {why}", flush=True)
            continue
        records.append(training_record(workload, found, where))
        write(folder, "train_measured", records)
        print(
            f"{workload.model} {workload.method} {workload.sequence_tokens} x "
            f"{workload.micro_batch_size}: {found.step_seconds:.4g} s, "
            f"{found.reserved_bytes / GIB:.2f} GiB reserved, "
            f"{found.allocated_bytes / GIB:.2f} allocated; {left:.0f} s left",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
