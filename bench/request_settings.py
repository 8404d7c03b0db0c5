"""What holds requests back in measured runs and is none of the engine's own doing.

The continuous benchmark (``SemiAnalysisAI/InferenceX``) publishes the script of each run, below
``benchmarks/`` and, since 2026, ``benchmarks/single_node/``; each function names those that it was
read from. A setting says how long at most; a fitted constant says which share of it is waited for.

Runs of other origin carry no date. Their client sends equal lengths, which has two effects that no
source states (the other one: :mod:`bench.serving_clients`): they were seen in these rows, so their
constants start from what theory says, or from next to nothing, and are fitted like all others.
"""

from __future__ import annotations

from bench.serving_clients import draws_lengths, lengths
from bench.serving_runs import Run

BALANCE_STEPS = 60.0
ONE_NODE = 8
FEW_CLIENTS = 16


def poll_steps(run: Run) -> float:
    """``--scheduler-recv-interval`` of SGLang on Blackwell: steps between looks for requests.

    ``dsr1_fp4_b200.sh``, ``dsr1_fp8_b200.sh`` (10 with 4 devices), ``qwen3.5_*_b200.sh``,
    ``qwen3.5_bf16_b300.sh``: 10, and 30 from 16 clients on. ``qwen3.5_fp8_b300.sh`` and
    ``glm5_fp4_b200.sh``: 10. Not set by ``glm5_fp8_b200.sh``, nor by scripts for Hopper: no wait.
    """
    if run.work.engine != "sglang" or run.machine.device.family != "blackwell":
        return 0.0
    if not draws_lengths(run.row):
        return 0.0
    name, is_fp8 = run.work.model.name.lower(), run.layout.weight_format == "fp8"
    if name.startswith("glm"):
        return 0.0 if is_fp8 else 10.0
    is_small = name.startswith("deepseek") and run.layout.tensor < ONE_NODE
    is_b300 = name.startswith("qwen3.5") and "B300" in run.machine.device.name
    if is_fp8 and (is_small or is_b300):
        return 10.0
    return 10.0 if run.in_flight < FEW_CLIENTS else 30.0


def batch_wait_steps(run: Run) -> float:
    """``batch_wait_timeout_iters`` of TensorRT-LLM: ``70b_fp8_b200_trt_slurm.sh`` and its like."""
    name = run.work.model.name.lower()
    is_llama = name.startswith("llama-3") and "70b" in name
    is_set = run.work.engine == "triton" and is_llama and lengths(run.row) == (1024, 1024)
    return 20.0 if is_set and run.layout.tensor < ONE_NODE else 0.0


def balance_steps(run: Run) -> float:
    """``attention_dp_config``: ``timeout_iters`` of TensorRT-LLM, whose ranks wait for each other.

    ``dsr1_fp4_b200_trt.sh``, ``dsr1_fp8_b200_trt.sh``, ``dsr1_fp8_h200_trt.sh``, on one node.
    """
    is_set = run.work.engine == "triton" and 1 < run.layout.data <= ONE_NODE
    return BALANCE_STEPS if is_set else 0.0


def lacks_slots(run: Run) -> bool:
    """Whether the server may have had fewer slots than clients (TensorRT-LLM's own runs): one slot
    at least, or nothing ran."""
    is_own = run.work.engine == "triton" and not draws_lengths(run.row)
    return is_own and run.in_flight > 1.0
