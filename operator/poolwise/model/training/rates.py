"""What one device reaches in training: fitted fractions of its peaks, number format by format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from poolwise.errors import InvalidInput
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.formats import master_format, native_arithmetic
from poolwise.model.hardware import Device
from poolwise.model.roofline import Rates, ceiling_flops_per_second, peak_flops_per_second
from poolwise.model.training.maturity import PHASE, clock_fraction
from poolwise.model.work import TrainingWork


@dataclass(frozen=True, slots=True)
class Reachable:
    """Rates of one device for one piece of work, and what they are held back by."""

    products: Rates
    wide: Rates
    """16-bit products, where the rest is done in fewer bits (the head)."""
    attention: Rates
    unhidden: float
    traffic: float
    scan_traffic: float
    """Traffic of a mixer that scans its tokens (Mamba) over that of norms and attention, less 1."""
    experts_fraction: float
    experts_half_tokens: float

    def expert_rates(self, tokens_per_expert: float) -> Rates:
        """Grouped products reach the less of the dense rate, the fewer tokens an expert has."""
        filled = tokens_per_expert / (tokens_per_expert + self.experts_half_tokens)
        rate = self.products.flops_per_second * self.experts_fraction * filled
        return Rates(rate, self.products.bytes_per_second)


def reachable(work: TrainingWork, device: Device, calibration: Calibration) -> Reachable:
    """For a transformer in the work's precision.

    Raises InvalidInput where the device does not compute in it.
    """
    return _reachable(work.precision, device, calibration)


@lru_cache(maxsize=1024)
def _reachable(precision: str, device: Device, calibration: Calibration) -> Reachable:
    _check_computes(precision, device)
    wide = master_format(precision)
    return Reachable(
        products=_rates("products", precision, precision, device, calibration),
        wide=_rates("products", wide, wide, device, calibration),
        attention=_attention_rates(device, calibration),
        unhidden=calibration.value(PHASE, "unhidden", device),
        traffic=calibration.value(PHASE, "elementwise_traffic", device, precision),
        scan_traffic=calibration.value(PHASE, "scan_traffic", device),
        experts_fraction=calibration.value(PHASE, "experts", device),
        experts_half_tokens=calibration.value(PHASE, "experts_half_tokens", device),
    )


def alike(every: Rates) -> Reachable:
    """Of a model whose kernels nobody knows: all of them reach the same, and one time hides behind
    the other."""
    return Reachable(
        products=every,
        wide=every,
        attention=every,
        unhidden=0.0,
        traffic=1.0,
        scan_traffic=0.0,
        experts_fraction=1.0,
        experts_half_tokens=0.0,
    )


def rates(work: TrainingWork, device: Device, calibration: Calibration, term: str) -> Rates:
    """Reachable compute in the work's precision, and reachable bandwidth.

    Raises InvalidInput where the device does not compute in it.
    """
    _check_computes(work.precision, device)
    return _rates(term, work.precision, work.precision, device, calibration)


def _check_computes(precision: str, device: Device) -> None:
    """Weights that are only read may be expanded for a unit of more bits; training in a format is
    to multiply in it."""
    if native_arithmetic(precision, device.peak_flops_per_second) is None:
        known = ", ".join(device.peak_flops_per_second)
        raise InvalidInput(device.name, f"does not compute in {precision}; it has {known}")


def _attention_rates(device: Device, calibration: Calibration) -> Rates:
    return _rates("attention", EVERY, "bf16", device, calibration)


def _rates(
    term: str, number_format: str, unit: str, device: Device, calibration: Calibration
) -> Rates:
    fraction = calibration.value(PHASE, term, device, number_format)
    at_its_clock = ceiling_flops_per_second(device, unit) * clock_fraction(device, calibration)
    # Watts to spare speed up no part that reaches its peak without them (A10G).
    ceiling = min(at_its_clock, peak_flops_per_second(device, unit))
    return Rates(ceiling * fraction, _bandwidth(device, calibration))


def _bandwidth(device: Device, calibration: Calibration) -> float:
    return device.memory_bandwidth_bytes_per_second * calibration.value(PHASE, "bandwidth", device)
