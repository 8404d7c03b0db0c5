"""Rows of ``kernels_measured`` as kernels on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from bench.formats import number_format
from bench.tables import Row, figure, number, whole
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.kernels.attention import Decode, Prefill
from poolwise.model.kernels.constants import Software
from poolwise.model.kernels.experts import Experts
from poolwise.model.kernels.gemm import Gemm
from poolwise.model.kernels.precision import PRECISIONS, Precision, speeds
from poolwise.model.kernels.predicting import Kernel, multiplied, predict
from poolwise.model.prediction import Interval
from poolwise.plan.nodes.machines import device
from poolwise.tables import Tables

STATED = ("gpu", "op", "dtype")
PRECISION_NAMES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_static": "fp8",
    "sq": "int8",
    "w4a16": "int4_wo",
    "w8a16": "int8_wo",
    "w4a16_mxfp4": "mxfp4_wo",
    "w4a8_mxfp4_mxfp8": "mxfp4_fp8",
    "w4a8_mxfp4_fp8": "mxfp4_fp8",
    "w4afp8": "mxfp4_fp8",
    "w4a4_nvfp4": "nvfp4",
    "fp4": "nvfp4",
}
"""Names of the source; others are as in the model. ``sq`` is SmoothQuant: 8 bits on both sides."""
LIBRARIES = ("marlin", "cutedsl", "triton", "cutlass", "trtllm")
"""Parts of a kernel's name that tell who wrote it, the telling ones first."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """One measured kernel."""

    row: Row
    kernel: Kernel
    device: Device
    precision: Precision
    software: Software
    seconds: float

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]


def kernel_run(row: Row, tables: Tables) -> KernelRun | str:
    """One row, or why it cannot be predicted."""
    accelerator = tables.accelerators.find(row.get("gpu", ""))
    if accelerator is None:
        return "accelerator is not known"
    name = row.get("dtype", "")
    precision = PRECISIONS.get(PRECISION_NAMES.get(name) or _precision_name(name))
    if precision is None:
        return "number format is not known"
    kernel = _kernel(row)
    if isinstance(kernel, str):
        return kernel
    here = device(accelerator)
    try:
        speeds(here, multiplied(kernel, precision))
    except InvalidInput:
        return "the device cannot multiply the number format"
    seconds = (figure(row, "latency_us") or 0.0) / 1e6
    return KernelRun(row, kernel, here, precision, _software(row), seconds)


def kernel_runs(rows: Iterable[Row], tables: Tables) -> Iterator[KernelRun]:
    """Rows that can be predicted and were measured."""
    for row in rows:
        found = kernel_run(row, tables)
        if not isinstance(found, str) and found.seconds > 0.0:
            yield found


def predicted(run: KernelRun, calibration: Calibration) -> Interval:
    """The model's answer for one row."""
    return predict(run.kernel, run.device, run.precision, run.software, calibration).seconds


def _precision_name(name: str) -> str:
    """As in the model where it has the name, else the format that the words mean."""
    return name if name in PRECISIONS else number_format(name)


def _software(row: Row) -> Software:
    """The library counts where kernels differ by it: grouped experts."""
    engine = row.get("engine", "")
    if row["op"] != "moe_ffn":
        return Software(engine)
    name = row.get("kernel_source", "")
    return Software(engine, next((each for each in LIBRARIES if each in name), ""))


def _kernel(row: Row) -> Kernel | str:
    build = _BUILDERS.get(row.get("op", ""))
    if build is None:
        return "operation is not known"
    sizes = {column: size for column in row if (size := number(row, column) or 0.0) > 0.0}
    try:
        return build(row, sizes)
    except KeyError as missing:
        return f"row has no {missing.args[0]}"


def _gemm(row: Row, sizes: Mapping[str, float]) -> Kernel:
    return Gemm(sizes["m"], sizes["n"], sizes["k"])


def _attention(
    kind: type[Prefill | Decode], length: str, row: Row, sizes: Mapping[str, float]
) -> Kernel:
    """Of a prompt or of single tokens; ``length`` is the column of what they attend over."""
    return kind(
        sizes["batch"],
        sizes[length],
        heads=sizes["heads"],
        kv_heads=sizes.get("kv_heads", sizes["heads"]),
        head_size=sizes["head_dim"],
        window=whole(row, "window"),
        kv_bytes=_kv_bytes(row),
    )


def _experts(row: Row, sizes: Mapping[str, float]) -> Kernel:
    return Experts(
        tokens=sizes["num_tokens"],
        hidden=sizes["hidden"],
        inner=sizes["inter"],
        matrices=2 if "nongated" in row.get("kernel_source", "") else 3,
        chosen=sizes["topk"],
        experts=sizes["experts"],
        tensor=sizes.get("moe_tp", 1.0),
        parallel=sizes.get("moe_ep", 1.0),
        alpha=_alpha(row.get("routing", "")),
    )


def _alpha(routing: str) -> float | None:
    """Exponent of ``power_law_1.2``."""
    exponent = routing.rpartition("_")[2]
    try:
        return float(exponent)
    except ValueError:
        return None


def _kv_bytes(row: Row) -> float:
    return 1.0 if row.get("kv_dtype", "").startswith(("fp8", "int8")) else 2.0


_BUILDERS: Mapping[str, Callable[[Row, Mapping[str, float]], Kernel]] = {
    "gemm": _gemm,
    "attention_prefill": partial(_attention, Prefill, "q_len"),
    "attention_decode": partial(_attention, Decode, "kv_len"),
    "moe_ffn": _experts,
}
