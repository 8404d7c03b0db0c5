"""One kernel on one device, with what stands behind the figure."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.efficiency import Calibration, Provenance
from poolwise.model.hardware import Device
from poolwise.model.kernels.attention import Decode, Prefill
from poolwise.model.kernels.constants import PHASE, Software, constants
from poolwise.model.kernels.experts import Experts
from poolwise.model.kernels.gemm import Gemm
from poolwise.model.kernels.precision import PRECISIONS, Precision, speeds
from poolwise.model.prediction import Interval

Kernel = Gemm | Prefill | Decode | Experts
EIGHT_BIT_CACHE = "+kv8"


@dataclass(frozen=True, slots=True)
class KernelPrediction:
    """Time of one kernel."""

    seconds: Interval
    provenance: Provenance


def kernel_seconds(
    kernel: Kernel,
    device: Device,
    precision: Precision,
    software: Software,
    calibration: Calibration,
) -> float:
    """Time of one kernel. Raises InvalidInput where the device cannot multiply the format."""
    known = constants(
        kernel.operation, device, precision_key(kernel, precision), software, calibration
    )
    return kernel.seconds(speeds(device, multiplied(kernel, precision)), known)


def predict(
    kernel: Kernel,
    device: Device,
    precision: Precision,
    software: Software,
    calibration: Calibration,
) -> KernelPrediction:
    """The same with the range that the measured rows of the fit were off by."""
    mid = kernel_seconds(kernel, device, precision, software, calibration)
    known = calibration.efficiency(PHASE, spread_term(kernel.operation), device)
    return KernelPrediction(Interval.around(mid, known.spread), known.provenance)


def spread_term(operation: str) -> str:
    """The row whose spread is that of an operation's predictions; its value is 1."""
    return f"{operation}.seconds"


def multiplied(kernel: Kernel, precision: Precision) -> Precision:
    """What sets the peak: attention is held against 16 bits, whatever it multiplies.

    Its exponentials are the same in all precisions, so 8 bits gain little; how much is fitted.
    """
    return PRECISIONS["bf16"] if isinstance(kernel, Prefill | Decode) else precision


def precision_key(kernel: Kernel, precision: Precision) -> str:
    """Format of the constants; attention has its own for a cache in 8 bits."""
    has_small_cache = isinstance(kernel, Prefill | Decode) and kernel.kv_bytes < 2.0
    return f"{precision.name}{EIGHT_BIT_CACHE}" if has_small_cache else precision.name
