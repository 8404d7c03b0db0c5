"""Serving engines: one row each, with the names of the flags that the plan sets.

Flags were read in the engines' own documentation: vLLM 0.29 (``vllm serve --help``), SGLang 0.5
(server_arguments.md), TGI 3.3 (launcher reference), Triton 26.08 (``tritonserver --help``). What a
row does not name, the engine is not told. Arguments of the spec come last, so that they win.

Quantisation: a checkpoint that is published in a smaller format says so itself. Only ``fp8`` can
be made from wider weights at start, so only a spec that asks for it gets a flag. Where the plan
keeps weights in fp16 the engine is told so: vLLM refuses bf16 checkpoints on Turing and Volta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from poolwise.plan.pool import Pool
from poolwise.settings import Settings

NVIDIA, AMD, CPU = "NVIDIA", "AMD", "CPU"

METRICS_BESIDE_HTTP = 8002
"""Triton's default; taken where ``metricsPort`` is the port of its API."""
RENDEZVOUS_PORT = 29500
"""Where the leader of a replica waits for its workers."""
DRAIN = "drain_seconds"
"""The plan's name of the time for which an engine that is told to end goes on answering."""
LEADER, RANK = "$(LWS_LEADER_ADDRESS)", "$(LWS_WORKER_INDEX)"
"""Variables that LeaderWorkerSet gives each pod: the leader's name, and its place in the group."""


@dataclass(frozen=True, slots=True)
class Engine:
    """How one engine is started, and where it answers."""

    command: tuple[str, ...] = ()
    """Explicit, since vendors' builds of one engine have different entry points."""
    positional: str | None = None
    """What goes before all flags."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What the plan sets to the flag's text, ``{}`` standing for the value."""
    default_image_flags: Mapping[str, str] = field(default_factory=dict)
    """Flags of recent versions: left out where the user chose the image."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Platform to the field of :class:`Settings` that names the default image."""
    health_path: str | None = None
    """Answers 200 once the model is loaded; None: only the port tells."""
    live_path: str | None = None
    http_port: int | None = None
    """Port of the API where it is not the one of the metrics."""
    splits_pipeline: bool = True
    """Whether one replica may have several pipeline stages."""
    node_flags: tuple[str, ...] = ()
    """What each pod of a replica is told that spans nodes; empty: the engine keeps to one node."""
    worker_flags: tuple[str, ...] = ()
    """And those beside the leader, which alone answers requests."""
    waits_seconds: float = 0.0
    """For which it goes on with what is in flight once it is told to end, where no flag says how
    long: SGLang till the last request (sgl-project/sglang#1838), TGI for a time of its own. vLLM
    aborts everything."""


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine(
        command=("vllm", "serve"),
        positional="model",
        flags={
            "revision": "--revision={}",
            "name": "--served-model-name={}",
            "port": "--port={}",
            "tensor": "--tensor-parallel-size={}",
            "pipeline": "--pipeline-parallel-size={}",
            "expert": "--enable-expert-parallel",
            "max_model_tokens": "--max-model-len={}",
            "max_num_seqs": "--max-num-seqs={}",
            "max_batched_tokens": "--max-num-batched-tokens={}",
            "quantization": "--quantization={}",
            "number_type": "--dtype={}",
            "memory_fraction": "--gpu-memory-utilization={}",
            "kv_format": "--kv-cache-dtype={}",
        },
        default_image_flags={
            DRAIN: "--shutdown-timeout={}",
            "health_path": "--disable-access-log-for-endpoints={},/metrics",
        },
        images={NVIDIA: "vllm_image", AMD: "vllm_rocm_image", CPU: "vllm_cpu_image"},
        health_path="/health",
        live_path="/health",
        node_flags=(
            "--nnodes={nodes}",
            f"--node-rank={RANK}",
            f"--master-addr={LEADER}",
            f"--master-port={RENDEZVOUS_PORT}",
        ),
        worker_flags=("--headless",),
    ),
    "sglang": Engine(
        command=("python3", "-m", "sglang.launch_server"),
        flags={
            "model": "--model-path={}",
            "revision": "--revision={}",
            "name": "--served-model-name={}",
            "host": "--host={}",
            "port": "--port={}",
            "metrics": "--enable-metrics",
            "tensor": "--tp-size={}",
            "pipeline": "--pp-size={}",
            "expert": "--ep-size={}",
            "max_model_tokens": "--context-length={}",
            "max_num_seqs": "--max-running-requests={}",
            "max_batched_tokens": "--chunked-prefill-size={}",
            "quantization": "--quantization={}",
            "number_type": "--dtype={}",
            "kv_format": "--kv-cache-dtype={}",
        },
        default_image_flags={"lengths": "--collect-tokens-histogram"},
        images={NVIDIA: "sglang_image"},
        health_path="/health",
        live_path="/health",
        node_flags=(
            "--nnodes={nodes}",
            f"--node-rank={RANK}",
            f"--dist-init-addr={LEADER}:{RENDEZVOUS_PORT}",
        ),
        waits_seconds=math.inf,
    ),
    "tgi": Engine(
        command=("text-generation-launcher",),
        flags={
            "model": "--model-id={}",
            "revision": "--revision={}",
            "host": "--hostname={}",
            "port": "--port={}",
            "tensor": "--num-shard={}",
            "max_model_tokens": "--max-total-tokens={}",
            "max_num_seqs": "--max-batch-size={}",
            "quantization": "--quantize={}",
            "number_type": "--dtype={}",
            "kv_format": "--kv-cache-dtype={}",
        },
        default_image_flags={DRAIN: "--graceful-termination-timeout={}"},  # since 3.2.2
        images={NVIDIA: "tgi_image"},
        health_path="/health",
        live_path="/health",
        splits_pipeline=False,
        waits_seconds=90.0,
    ),
    "triton": Engine(
        command=("tritonserver",),
        flags={
            "model": "--model-repository={}",
            "port": "--http-port={}",
            "metrics_port": "--metrics-port={}",
            DRAIN: "--exit-timeout-secs={}",
        },
        images={NVIDIA: "triton_image", CPU: "triton_image"},
        health_path="/v2/health/ready",
        live_path="/v2/health/live",
        http_port=8000,
    ),
    "custom": Engine(),
}


def platform(pool: Pool) -> str | None:
    """The build of an engine that runs on the pool; None for hardware that no row has one for."""
    if pool.is_cpu:
        return CPU
    vendor = (pool.resource or "").partition("/")[0]
    return {"nvidia.com": NVIDIA, "amd.com": AMD}.get(vendor)


def default_image(engine: str, pool: Pool, settings: Settings) -> str | None:
    """Image for the pool's hardware where the spec names none; None: there is no such build."""
    field_name = ENGINES[engine].images.get(platform(pool) or "")
    return getattr(settings, field_name) if field_name else None


def arguments(engine: Engine, values: Mapping[str, object], is_default: bool) -> list[str]:
    """The engine's arguments for what the plan sets; a value of None is not set."""
    flags = {**engine.flags, **(engine.default_image_flags if is_default else {})}
    given = [
        text.format(values[what]) for what, text in flags.items() if values.get(what) is not None
    ]
    first = values.get(engine.positional or "")
    return [*([str(first)] if first is not None else []), *given]


def waits_seconds(engine: Engine, given: Sequence[str], nodes: int) -> float:
    """For which a replica with these arguments goes on with what is in flight, told to end.

    Not at all where it spans nodes: those beside the leader end at once, whatever its flags say,
    and without them nobody computes.
    """
    if nodes > 1:
        return 0.0
    texts = (flags.get(DRAIN) for flags in (engine.flags, engine.default_image_flags))
    known = {text.partition("=")[0] for text in texts if text}
    is_told = any(argument.partition("=")[0] in known for argument in given)
    return math.inf if is_told else engine.waits_seconds


def node_arguments(engine: Engine, nodes: int, is_worker: bool) -> list[str]:
    """What one pod of a replica is told of the others; nothing where it has one node."""
    if nodes == 1:
        return []
    flags = [*engine.node_flags, *(engine.worker_flags if is_worker else ())]
    return [flag.format(nodes=nodes) for flag in flags]


def without_overridden(planned: Sequence[str], users: Sequence[str]) -> list[str]:
    """Planned arguments less those that the user gives again, spelled alike.

    Engines differ in what a repeated flag means, so the user's is the only one left.
    """
    given = flags_of(users)
    return [argument for argument in planned if argument.partition("=")[0] not in given]


def flag_of(engine: str, what: str) -> str:
    """The flag of an engine that says it; empty where there is none, or none that is known."""
    return ENGINES[engine].flags.get(what, "").partition("=")[0]


def flags_of(arguments: Sequence[str]) -> dict[str, str]:
    """Flag by flag its value, whether that follows ``=`` or is the next argument; empty: none.

    Flags are spelled with hyphens, as vLLM reads underscores too.

    >>> flags_of(["--seed", "-1", "--enforce_eager", "-tp=2"])
    {'--seed': '-1', '--enforce-eager': '', '-tp': '2'}
    """
    found = {}
    for argument, following in pairwise([*arguments, "--"]):
        if _is_flag(argument):
            name, _, value = argument.partition("=")
            found[name.replace("_", "-")] = value or ("" if _is_flag(following) else following)
    return found


def _is_flag(argument: str) -> bool:
    """And no negative number."""
    return argument.startswith("--") or (argument[:1] == "-" and argument[1:2].isalpha())
