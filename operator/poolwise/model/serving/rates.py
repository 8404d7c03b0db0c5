"""Effective rates of one device: what its best kernels reach times fitted efficiencies.

Formats decide bytes and arithmetic apart: a format without a unit on the device is expanded to 16
bits, so its weights shrink and its products do not get faster (fp8 on Ampere, int4 anywhere).
"""

from __future__ import annotations

from poolwise.model import formats
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.roofline import ceiling_flops_per_second
from poolwise.model.serving.iteration import Products
from poolwise.model.serving.memory import PHASE
from poolwise.model.work import ServingLayout

NONE = Products(0.0, 0.0)
"""What a step lacks."""


def arithmetic(weight_format: str, device: Device) -> str:
    """The unit that multiplies a format here.

    16-bit formats stand in for each other (fp16 on Turing and Volta, which have no bf16);
    quantised ones without a unit of their own are expanded to 16 bits: bytes shrink, FLOPs do not.
    mxfp4 weights meet 8-bit activations (gpt-oss), and mixed operands run at the rate of fp8.
    """
    peaks = device.peak_flops_per_second
    if weight_format == "mxfp4" and "fp4" in peaks:
        return "fp8"
    sixteen = next((unit for unit in ("bf16", "fp16") if unit in peaks), None)
    native = formats.native_arithmetic(weight_format, peaks)
    if weight_format in ("bf16", "fp16") and sixteen is not None:
        return native if native == weight_format else sixteen
    return native or sixteen or "fp32"


class Rates:
    """Of one device."""

    def __init__(self, device: Device, calibration: Calibration) -> None:
        self.device = device
        self.calibration = calibration
        self.weight_bandwidth = self._bandwidth("weight_bandwidth")
        self.cache_bandwidth = self._bandwidth("cache_bandwidth")

    def constant(self, term: str, number_format: str = "*") -> float:
        return self.calibration.value(PHASE, term, self.device, number_format)

    def flops_per_second(self, weight_format: str) -> float:
        unit = arithmetic(weight_format, self.device)
        stands_in = unit in ("bf16", "fp16") or weight_format == "mxfp4"
        ceiling = ceiling_flops_per_second(self.device, unit if stands_in else weight_format)
        return ceiling * self.constant("compute", unit)

    @property
    def attention_flops_per_second(self) -> float:
        """Attention computes in 16 bits whatever the weights are."""
        ceiling = ceiling_flops_per_second(self.device, arithmetic("bf16", self.device))
        return ceiling * self.constant("attention_compute")

    def _bandwidth(self, term: str) -> float:
        return self.device.memory_bandwidth_bytes_per_second * self.constant(term)


def products(
    count: float, stored_bytes: float, weight_format: str, layout: ServingLayout, rates: Rates
) -> Products:
    return Products(
        read_seconds=count * stored_bytes / layout.tensor / rates.weight_bandwidth,
        row_seconds=2.0 * count / layout.tensor / rates.flops_per_second(weight_format),
    )
