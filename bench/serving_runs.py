"""Rows of ``serve_measured`` as work, layout and machine, and what each protocol predicts.

Normalised here: formats by their several names, engines (TensorRT-LLM is Triton's backend), the
cache's format where the source is silent (TensorRT-LLM quantises it with the weights). Left out:
models without a public shape, mixed devices, attention replicated over data (``attn_dp`` above 1)
and rows whose tensor-parallel size exceeds the node, most of which repeat ``moe_tp * moe_ep``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.tables import Row, number, whole
from poolwise.model import presets
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.serving.capacity import capacity
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.replica import replica
from poolwise.model.work import Model, ServingLayout, ServingWork, Tokens, Transformer
from poolwise.plan.pools.machines import device
from poolwise.tables import AcceleratorRow, Tables

HOST = Host(96.0, 1e12, 1e10, 1e11, 5e9)
NETWORK_BYTES_PER_SECOND = 400e9

FORMATS = {
    "": "bf16",
    "fp8_block": "fp8",
    "fp4": "nvfp4",
    "int8-wo": "int8",
    "int4-g32-wo": "int4",
    "uint4": "int4",
    "fp16 (bf16 matmul)": "fp16",
}
ENGINES = ("sglang", "triton", "vllm")
BATCHED_TOKENS = 8192
"""vLLM's default on devices of this size, and what the other engines are run with."""
BATCH_LIMIT = 2048
"""Of TensorRT-LLM's throughput benchmark."""
FIRST_WAVE = 0.05
"""Mean share of the other clients' prompts that a prompt waits for in a closed loop: clients send
ten requests each, and the first of each arrive together, which is half of them for one in ten."""
TOGETHER = 0.5
"""The same for a request's serial part: clients in step send together."""


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    row: Row
    mode: str
    work: ServingWork
    layout: ServingLayout
    machine: Machine
    in_flight: float
    measured: float
    """Seconds per token, seconds to the first, or generated tokens per second."""

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]

    def replica(self, calibration: Calibration) -> Replica:
        """What ran."""
        return replica(self.work, self.layout, self.machine, calibration)


def runs(rows: Iterable[Row], tables: Tables, modes: Iterable[str], column: str) -> Iterator[Run]:
    """Usable rows of some modes, with the figure of ``column`` (milliseconds or tokens/s)."""
    wanted = frozenset(modes)
    for row in rows:
        value = number(row, column)
        if row["mode"] in wanted and value:
            found = _run(row, tables, value / 1e3 if column.endswith("ms_mean") else value)
            if found is not None:
                yield found


def token_seconds(run: Run, calibration: Calibration) -> float:
    """Time per token with the run's clients in a closed loop."""
    return _closed_loop(run.replica(calibration), run.in_flight).token_seconds


def first_token_seconds(run: Run, calibration: Calibration) -> float:
    """Mean time to the first token in a closed loop."""
    served = run.replica(calibration)
    at = _closed_loop(served, run.in_flight)
    if run.mode == "prefill-latency":
        return at.chunks * at.mixed.seconds
    others = run.in_flight - 1.0
    added = at.chunks * (at.mixed.seconds - at.decode.seconds)
    waits = others * (FIRST_WAVE * added + TOGETHER * served.serial_seconds)
    own = at.token_seconds / 2 + at.chunks * at.mixed.seconds
    return served.request_seconds + waits + own


def generated_tokens_per_second(run: Run, calibration: Calibration) -> float:
    """At saturation, or for one static batch read and generated as a whole."""
    served = run.replica(calibration)
    output = served.generated.mean + 1.0
    if run.mode != "static-batch":
        return output * capacity(served, ()).requests_per_second
    at = _closed_loop(served, run.in_flight)
    added = at.chunks * (at.mixed.seconds - at.decode.seconds)
    whole_seconds = run.in_flight * added + served.generated.mean * at.decode.seconds
    return output * run.in_flight / whole_seconds


def _closed_loop(served: Replica, in_flight: float) -> State:
    return state(served, max(1.0, in_flight))


def _run(row: Row, tables: Tables, measured: float) -> Run | None:
    found, accelerator = tables.model(row["model"]), tables.accelerator(row["gpu"])
    if found is None or accelerator is None:
        return None
    model = presets.model(found)
    prompt, output = number(row, "isl"), number(row, "osl")
    if not isinstance(model.shape, Transformer) or not prompt or not output:
        return None
    layout = _layout(row, model, int(prompt + output) + 1)
    if not _is_usual(row, layout, accelerator):
        return None
    clients = number(row, "concurrency") or number(row, "batch_per_dp") or 1.0
    work = _work(row, model, prompt, output)
    return Run(row, row["mode"], work, layout, _machine(accelerator), clients, measured)


def _work(row: Row, model: Model, prompt: float, output: float) -> ServingWork:
    return ServingWork(
        model=model,
        requests_per_second=None,
        input_tokens=Tokens(prompt, prompt),
        output_tokens=Tokens(output, output),
        prefix_hit_fraction=0.0,
        max_model_tokens=None,
        targets=(),
        engine=_engine(row),
    )


def _layout(row: Row, model: Model, longest_tokens: int) -> ServingLayout:
    return ServingLayout(
        tensor=whole(row, "tp") or 1,
        pipeline=whole(row, "pp") or 1,
        expert=whole(row, "moe_ep") or 1,
        weight_format=_weight_format(row, model.native_format),
        max_num_seqs=BATCH_LIMIT,
        max_model_tokens=longest_tokens,
        max_batched_tokens=BATCHED_TOKENS,
        kv_format=_cache_format(row),
    )


def _is_usual(row: Row, layout: ServingLayout, accelerator: AcceleratorRow) -> bool:
    """One replica within one node, attention cut by tensor parallelism alone."""
    is_whole = whole(row, "n_gpus") == layout.count
    in_node = layout.tensor <= accelerator.accelerators_per_node
    return is_whole and in_node and (number(row, "attn_dp") or 1.0) <= 1.0


def _engine(row: Row) -> str:
    name = row["engine"].lower()
    return next((each for each in ("vllm", "sglang") if name.startswith(each)), "triton")


def _weight_format(row: Row, native: str) -> str:
    """Of the experts, which are most of a sparse model; gpt-oss is labelled nvfp4 but is mxfp4."""
    label = (row["moe_precision"] or row["weight_precision"]).lower()
    found = FORMATS.get(label, label)
    return native if found == "nvfp4" and native == "mxfp4" else found


def _cache_format(row: Row) -> str:
    if row["kv_precision"]:
        return row["kv_precision"]
    is_quantised = FORMATS.get(row["weight_precision"], row["weight_precision"]) in ("fp8", "nvfp4")
    return "fp8" if is_quantised and _engine(row) == "triton" else "bf16"


def _machine(accelerator: AcceleratorRow) -> Machine:
    per_node = accelerator.accelerators_per_node
    return Machine(
        device(accelerator),
        Interconnect(
            accelerators_per_node=per_node,
            intra_node_bytes_per_second=accelerator.link_bytes_per_second,
            inter_node_bytes_per_second=NETWORK_BYTES_PER_SECOND,
            domain_accelerators=accelerator.domain_accelerators or per_node,
            is_switched=accelerator.link_is_switched,
            peer_bytes_per_second=accelerator.peer_bytes_per_second,
        ),
        HOST,
    )
