"""How long one engine step takes: a roofline per operator, links, launches and the host.

A step of continuous batching carries one new token of each running sequence and a chunk of
prompts. Its operators are the dense products, the routed experts, the head, attention to the
cache, and attention inside prompts. Each costs ``(m**3 + c**3) ** (1/3)`` of its memory time m and
compute time c: a maximum with the soft knee that products of 128 to 512 rows show (Vidur's
profiles of 70B on H100: 1.04, 1.22 and 2.0 times one row). The shares ``m**3`` and ``c**3`` are
also the elasticities, so the ledger that they make tells what would help.

On top come two all-reduces a layer (where groups of devices attend to their own requests and share
the experts: a gather and a reduction of all tokens), a constant for each layer (launch and drain of
its kernels, which no faster unit shortens) and the host's own work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.kv_cache import Reads

KNEE = 3.0
"""Exponent of the soft maximum; 2 to 8 fit the serving runs alike."""
_TO_SHARE = 1.0 / KNEE - 1.0


@dataclass(slots=True)  # none here is frozen: searches make thousands, and that takes longer
class StepTime:
    """One step by what it waits for, in seconds."""

    memory_bandwidth: float = 0.0
    compute: float = 0.0
    interconnect: float = 0.0
    latency: float = 0.0
    host: float = 0.0

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.memory_bandwidth + self.compute + self.interconnect + self.latency + self.host

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """Of memory, arithmetic, links, and what no faster unit shortens."""
        whole = self.seconds or 1.0
        return (
            self.memory_bandwidth / whole,
            self.compute / whole,
            self.interconnect / whole,
            (self.latency + self.host) / whole,
        )


@dataclass(slots=True)
class Batch:
    """What one step carries."""

    sequences: float = 0.0
    """Generating one token each."""
    context_tokens: float = 0.0
    """Of each of them."""
    prompt_tokens: float = 0.0
    prompts: float = 0.0
    """Prompts that end in this step and so need the head."""


@dataclass(slots=True)
class Products:
    """Matrix products of one kind over all layers, on one device."""

    read_seconds: float
    """Weights once through the memory bus."""
    row_seconds: float
    """Arithmetic of one token."""
    row_traffic_seconds: float = 0.0
    """Activations of one token through the memory bus, where that counts."""
    idle_share: float = 0.0
    """Share of the weights that one token leaves alone: 1 - k/E."""
    padding_rows: float = 0.0
    """Rows that grouped products add when all experts are touched: each rounds up to a tile."""
    touched_unevenness: float = 0.0
    """Of whole experts on several devices: how many more of its own the fullest device has to read,
    as a share, times ``sqrt(touched * (1 - touched))``."""
    row_unevenness: float = 0.0
    """The same of rows, times their root."""

    def split(self, rows: float) -> tuple[float, float]:
        """Memory and compute part of the time of ``rows`` tokens."""
        touched = 1.0 - self.idle_share**rows
        read, multiplied = touched, rows
        if self.row_unevenness:
            fuller = self.touched_unevenness * math.sqrt(touched * (1.0 - touched))
            read = min(1.0, touched + fuller)
            multiplied += self.row_unevenness * math.sqrt(rows)
        return soft_maximum(
            self.read_seconds * read + self.row_traffic_seconds * rows,
            self.row_seconds * (multiplied + self.padding_rows * touched),
        )


@dataclass(slots=True)
class AllReduce:
    """Time of one all-reduce as ``a + b*rows + c*sqrt(rows)``, through three sizes."""

    latency_seconds: float = 0.0
    row_seconds: float = 0.0
    root_seconds: float = 0.0

    def seconds(self, rows: float) -> float:
        """Of a message with ``rows`` tokens' activations."""
        return self.latency_seconds + self.row_seconds * rows + self.root_seconds * math.sqrt(rows)


@dataclass(slots=True)
class StepCosts:
    """Coefficients of one model, layout and machine: a step is then a handful of products."""

    dense: Products
    experts: Products
    head: Products
    reads: Reads | None
    """None for a model without attention that is known."""
    key_read_seconds: float
    """One cached key of one sequence in one layer."""
    key_attend_seconds: float
    prompt_key_seconds: float
    """One query against one key inside a prompt, one layer."""
    prompt_keys: float
    """Keys that a prompt's token attends to on average, summed over layers."""
    all_reduces: float
    all_reduce: AllReduce
    exchange_row_seconds: float
    """One token gathered for the experts and reduced after them, all layers, under attention DP."""
    data: float
    """Groups that each attend to their own share of the tokens."""
    stage_seconds: float
    """Hand-over between pipeline stages, all of them."""
    latency_seconds: float
    sequence_seconds: float
    """Sampling and bookkeeping of one sequence; part of the latency, since it does not shrink."""
    host_seconds: float
    drafts: float = 0.0
    """Tokens that a prediction layer guesses for each sequence, and that the step verifies."""

    def step(self, batch: Batch, slowness: float = 1.0) -> StepTime:
        """Time of one step through all layers; all of it may take longer."""
        verified = batch.sequences * (1.0 + self.drafts)
        rows = verified + batch.prompt_tokens
        own = rows / self.data
        read, multiply = self.dense.split(own)
        if self.experts.row_seconds:
            of_experts = self.experts.split(rows)
            read, multiply = read + of_experts[0], multiply + of_experts[1]
        head_read, head_multiply = self.head.split((verified + batch.prompts) / self.data)
        key_read, attend = self._attention(batch)
        links = self.all_reduces * self.all_reduce.seconds(own) + self.exchange_row_seconds * rows
        return StepTime(
            (read + head_read + key_read) * slowness,
            (multiply + head_multiply + attend) * slowness,
            (links + self.stage_seconds) * slowness,
            (self.latency_seconds + self.sequence_seconds * batch.sequences) * slowness,
            self.host_seconds * slowness,
        )

    def _attention(self, batch: Batch) -> tuple[float, float]:
        if self.reads is None:
            return 0.0, 0.0
        inside = batch.prompt_tokens / self.data * self.prompt_keys * self.prompt_key_seconds
        if not batch.sequences:
            return 0.0, inside
        keys = self.reads.keys(batch.context_tokens) * batch.sequences / self.data
        attend_seconds = self.key_attend_seconds * (1.0 + self.drafts)
        read, attend = soft_maximum(keys * self.key_read_seconds, keys * attend_seconds)
        return read, attend + inside


def soft_maximum(memory: float, compute: float) -> tuple[float, float]:
    """Shares of the soft maximum of two times that overlap; they sum to it."""
    of_memory, of_compute = memory**KNEE, compute**KNEE
    both = of_memory + of_compute
    if both <= 0.0:
        return 0.0, 0.0
    share = both**_TO_SHARE
    return of_memory * share, of_compute * share
