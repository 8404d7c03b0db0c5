"""The options of ``vllm serve`` that change what the double does; all others are accepted."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from e2e.images.double.batch import Limits
from e2e.images.double.costs import Costs, from_environment, number
from e2e.images.double.group import Place

BLOCK_SIZE = 16
DEFAULT_MODEL = "played/model"
DEFAULT_MAX_MODEL_LEN = 8192
LEAST_CACHE_TOKENS = 65_536


@dataclass(frozen=True)
class Options:
    """How the double runs."""

    model: str
    served_names: tuple[str, ...]
    host: str
    port: int
    limits: Limits
    costs: Costs
    start_seconds: float
    shutdown_timeout_seconds: float
    show_old_names: bool
    model_costs: str = ""
    """What an iteration takes by Poolwise's serving model, as JSON: see :mod:`modelled`."""
    place: Place | None = None
    """In a group of engines, where there are several."""

    @property
    def name(self) -> str:
        """The label ``model_name`` of the metrics, as vLLM chooses it."""
        return self.served_names[0]


def read(words: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Read ``serve MODEL --option=value ...``; raises ValueError with one sentence."""
    given, _ = _parser().parse_known_args(words)
    model = given.model_option or given.model or DEFAULT_MODEL
    return Options(
        model=model,
        served_names=tuple(given.served_model_name or [model]),
        host=given.host,
        port=given.port,
        limits=_limits(given, environment),
        costs=from_environment(environment),
        start_seconds=_from_environment(environment, "DOUBLE_START_SECONDS", 0.0),
        shutdown_timeout_seconds=given.shutdown_timeout,
        show_old_names=given.show_hidden_metrics_for_version is not None,
        model_costs=environment.get("DOUBLE_MODEL_COSTS", ""),
        place=_place(given),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--model", dest="model_option")
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-model-len", type=int, default=DEFAULT_MAX_MODEL_LEN)
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--max-num-batched-tokens", type=int, default=2048)
    parser.add_argument("--block-size", type=int, default=BLOCK_SIZE)
    parser.add_argument("--num-gpu-blocks-override", type=int)
    parser.add_argument("--shutdown-timeout", type=float, default=0.0)
    parser.add_argument("--show-hidden-metrics-for-version")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--pipeline-parallel-size", type=int, default=1)
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("--node-rank", type=int, default=0)
    parser.add_argument("--master-addr", default="127.0.0.1")
    parser.add_argument("--master-port", type=int, default=29501)
    parser.add_argument("--headless", action="store_true")
    return parser


def _place(given: argparse.Namespace) -> Place | None:
    """Where the engine stands in its group; raises ValueError for what vLLM would refuse too."""
    nodes, rank = given.nnodes, given.node_rank
    if nodes == 1:
        return None
    devices = given.tensor_parallel_size * given.pipeline_parallel_size
    if devices % nodes:
        raise ValueError(f"--nnodes={nodes}: must divide the {devices} devices of the replica")
    if not 0 <= rank < nodes:
        raise ValueError(f"--node-rank={rank}: must be from 0 to {nodes - 1}")
    if given.headless != (rank > 0):
        raise ValueError(f"--node-rank={rank}: every rank but 0 is --headless, and only those")
    return Place(nodes, rank, given.master_addr, given.master_port)


def _limits(given: argparse.Namespace, environment: Mapping[str, str]) -> Limits:
    for name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size"):
        if (value := getattr(given, name)) < 1:
            raise ValueError(f"--{name.replace('_', '-')}={value}: must be at least 1")
    default = max(LEAST_CACHE_TOKENS, 2 * given.max_model_len)
    cache_tokens = _from_environment(environment, "DOUBLE_KV_TOKENS", default)
    blocks = given.num_gpu_blocks_override or int(cache_tokens) // given.block_size
    if blocks * given.block_size < given.max_model_len:
        raise ValueError(
            f"a KV cache of {blocks * given.block_size} tokens cannot hold one sequence of "
            f"--max-model-len={given.max_model_len}"
        )
    return Limits(
        given.max_num_seqs,
        given.max_num_batched_tokens,
        given.max_model_len,
        given.block_size,
        blocks,
    )


def _from_environment(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    return number(name, text) if text else default
