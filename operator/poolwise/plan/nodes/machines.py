"""Rows of the tables, and what a node says of itself, as the values that the formulas take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from poolwise.errors import InvalidInput
from poolwise.model.hardware import Device
from poolwise.tables import AcceleratorRow, CpuRow

MIG_USABLE_FRACTION = 0.89
"""Of the gigabytes (10^9) in a MIG profile's name, what a program can allocate at least.

``nvidia-smi mig -lgip`` prints 20.00 GiB for a GB200's 1g.24gb (0.895, the least of those known),
16.00 for an H200's 1g.18gb (0.954), 10.75 for an H100 NVL's 1g.12gb (0.962) and 4.75 for an A100's
1g.5gb (1.02). Discovery's own memory label, where there is one, is exact.
"""

_PROFILE = re.compile(r"(?P<compute>\d+)g\.(?P<gigabytes>\d+)gb(?P<variant>[.+][a-z.+]+)?")


def device(row: AcceleratorRow) -> Device:
    """One whole accelerator."""
    return Device(
        name=row.name,
        is_cpu=False,
        family=row.family,
        memory_bytes=row.usable_memory_bytes,
        memory_bandwidth_bytes_per_second=row.memory_bandwidth_bytes_per_second,
        peak_flops_per_second=row.peak_flops_per_second,
        power_watts=row.power_watts,
        matmul_flops_per_second=row.matmul_flops_per_second,
        inference_only_reason=row.inference_only_reason,
        released_year=row.released_year,
    )


def mig_slice(row: AcceleratorRow, profile: str, memory_bytes: float | None = None) -> Device:
    """One MIG slice, e.g. ``1g.10gb``: its share of the compute and of the memory slices.

    A device has 7 compute and 8 memory slices (4 and 4 on A30 and RTX PRO 6000), says NVIDIA's MIG
    user guide; bandwidth goes with memory slices. ``memory_bytes`` is what the slice's own label
    says, else the profile's. Raises InvalidInput for a profile that the device cannot have.
    """
    compute_share, memory_share = mig_shares(row, profile)
    whole = device(row)
    named_bytes = float(_match(row, profile)["gigabytes"]) * 1e9 * MIG_USABLE_FRACTION
    return replace(
        whole,
        name=f"{row.name}-MIG-{profile}",
        memory_bytes=min(memory_bytes or named_bytes, whole.memory_bytes),
        memory_bandwidth_bytes_per_second=whole.memory_bandwidth_bytes_per_second * memory_share,
        peak_flops_per_second=_scaled(whole.peak_flops_per_second, compute_share),
        matmul_flops_per_second=_scaled(whole.matmul_flops_per_second, compute_share),
        power_watts=whole.power_watts * compute_share,
    )


def cpu_device(row: CpuRow, cores: float, memory_bytes: float) -> Device:
    """All ``cores`` (physical) of one node taken together; figures grow with the cores."""
    sockets = cores / row.cores_per_socket
    return Device(
        name=row.name,
        is_cpu=True,
        family="cpu",
        memory_bytes=memory_bytes,
        memory_bandwidth_bytes_per_second=row.memory_bandwidth_bytes_per_second * sockets,
        peak_flops_per_second=_scaled(row.peak_flops_per_second, sockets),
        power_watts=row.power_watts * sockets,
        matmul_flops_per_second={},
        cores=cores,
    )


def mig_shares(row: AcceleratorRow, profile: str) -> tuple[float, float]:
    """Of the compute and of the memory slices of a device, those that one MIG slice has.

    Raises InvalidInput for a profile that the device cannot have.
    """
    match = _match(row, profile)
    if row.mig_compute_slices is None or row.mig_memory_slices is None:
        raise InvalidInput(row.name, f"has no MIG, so {profile!r} cannot be a slice of it")
    compute = int(match["compute"])
    per_slice = row.labelled_memory_bytes / 1e9 / row.mig_memory_slices
    memory = round(int(match["gigabytes"]) / per_slice)
    if not (1 <= compute <= row.mig_compute_slices and 1 <= memory <= row.mig_memory_slices):
        raise InvalidInput(row.name, f"cannot be cut into {profile!r}")
    return compute / row.mig_compute_slices, memory / row.mig_memory_slices


def _match(row: AcceleratorRow, profile: str) -> re.Match[str]:
    match = _PROFILE.fullmatch(profile)
    if match is None:
        raise InvalidInput(row.name, f"MIG profile {profile!r} is not like '1g.10gb'")
    return match


def _scaled(figures: Mapping[str, float], share: float) -> dict[str, float]:
    return {name: value * share for name, value in figures.items()}
