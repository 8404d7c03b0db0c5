"""What the deployment of a service tells every law before the first request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """``minReplicas`` and ``maxReplicas``."""

    least: int
    most: int

    def clamped(self, replicas: int) -> int:
        """The nearest number that is allowed."""
        return min(max(replicas, self.least), self.most)


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """One iteration of an engine as a profiler measures it."""

    prefill_tokens: float
    decode_kv_tokens: float
    """Tokens of context that the decoding sequences read."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Service:
    """Targets, bounds, and the engine's flags as it prints them at its start."""

    bounds: Bounds
    ttft_target_seconds: float
    tpot_target_seconds: float
    batched_tokens: int
    """``--max-num-batched-tokens``."""
    sequences: int
    """``--max-num-seqs``."""
    kv_tokens: int
    """``num_gpu_blocks * block_size`` of ``vllm:cache_config_info``."""
    profile: tuple[ForwardPass, ...] = ()
    """What a sweep of one engine before the deployment measures, for the laws that need one."""
