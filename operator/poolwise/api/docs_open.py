"""What docs/api.md says of the fields that a status carries beyond its schema."""

from __future__ import annotations

from collections.abc import Iterator

_HEAD = """
## What a status carries beyond these tables

The schema names what columns and autoscalers rely on, and lets the rest pass: more figures are
told as the model learns, and these may change with any release. Those of today:

| in | fields | meaning |
|---|---|---|
"""
_PLAN, _EACH = "`status.plan`", "`status.plan`, and each of its `candidates`"
_TRAINING, _SCALING = "`status.observed.training`", "`status.scaling`"
_ROWS = (
    (_PLAN, "currency", "Of all costs in it."),
    (_PLAN, "generation", "`metadata.generation` of the spec that was planned."),
    (_PLAN, "significant", "Whether the choice is surer than the ranges of both predictions."),
    (_PLAN, "rollout", "`StartFirst` or `StopFirst`: how an update of the service goes."),
    (_PLAN, "further", "Of a service on several pools: the others, as the first is told."),
    (_PLAN, "candidatesOmitted", "How many of the worst candidates are left out, beyond 64."),
    (_EACH, "reasonCode", "[The reason as one word](conditions.md#reasons-one-candidate)."),
    (_EACH, "waits", "True where it could run there, and too little is free."),
    (_EACH, "totalSeconds", "Of a run, from its first step to its last."),
    (_EACH, "startupSeconds", "Until the nodes that it waits for are there."),
    (_EACH, "lostSeconds", "[What interruptions add](cost.md#spot-nodes); part of `totalSeconds`."),
    (_EACH, "energyJoules", "Of a run; of a service in an hour."),
    (_EACH, "powerWatts", "Of one accelerator, or of the cores of a replica on CPU."),
    (
        _EACH,
        "provenance",
        "`measured`, `fitted`, `inherited` or `specification`:"
        " [what the prediction leans on](performance-model.md#ranges-provenance-significance).",
    ),
    (_EACH, "lowConfidence", "Why the prediction is less sure than most."),
    (
        _EACH,
        "correctedBy correctedFrom",
        "Factors on the times by phase, and the ratios and samples that they follow from"
        " ([what was measured](concepts.md#what-was-measured)).",
    ),
    (
        "`predicted` of these",
        "stepSeconds tokensPerSecond samplesPerSecond",
        "Of a run; of a service at its planned load, on one replica. `...Low` and `...High` are the"
        " range, here and below.",
    ),
    (
        "`predicted` of these",
        "ttftSeconds itlSeconds tpotSeconds e2eSeconds meanRequestSeconds concurrency limiting"
        " plannedRequestsPerSecondPerReplica requestsPerSecondPerReplica",
        "Of a service: percentiles and mean at the planned load, requests in flight there, and what"
        " a replica bears inside all targets, with the target that ends it.",
    ),
    (
        "`predicted` of these",
        "memoryBytesPerAccelerator memoryBytesPerAcceleratorHigh",
        "What is needed, and the upper end of it.",
    ),
    (
        "`shape` of these",
        "data tensor pipeline context expert zeroStage microBatchSize recompute",
        "Of a run.",
    ),
    (
        "`shape` of these",
        "tensor pipeline expert weightFormat kvCacheFormat quantization maxModelLength"
        " maxNumSeqs maxBatchedTokens cpuCores memoryBytes",
        "Of a replica; the format of a cache that has no 16 bits, and the last two on CPU.",
    ),
    (
        "`memory` of these",
        "weightsBytes gradientsBytes optimizerBytes activationsBytes kvCacheBytes reserveBytes"
        " neededBytes mostBytes usableBytes",
        "By use; then their sum, its upper end, and what the accelerator has.",
    ),
    (
        "`status.plan.prices[]`",
        "delaySecondsPerAcceleratorSecond reason",
        "What it delays all others, and who would lose how much elsewhere.",
    ),
    (
        "`status.observed`",
        "pods",
        "`desired`, `existing`, `ready`, and of a job `succeeded`, `failed`.",
    ),
    (
        "`status.observed`",
        "problems",
        "At most 8, each with `reason` ([of pods](conditions.md#reasons-pods)), `message`, `pods`.",
    ),
    (
        "`status.observed`",
        "startTime completionTime expectedFinishTime",
        "Of a run: its begin and end, or when it ends by what is known now.",
    ),
    (_TRAINING, "paceSeconds", "Wall-clock time for each step, with everything in between."),
    (_TRAINING, "lastCheckpointSteps", "Where the run goes on from after a stop."),
    (
        _TRAINING,
        "time model alike pool stepsBefore modelStepSeconds rated",
        "What the next process and other runs learn from; for Poolwise itself.",
    ),
    (
        "`status.observed.accrued`",
        "currency acceleratorHours",
        "Of the sums; and one more of them.",
    ),
    ("`status.observed.accrued`", "unpricedAcceleratorHours", "Those whose price nobody knew."),
    (
        "`status.observed.accrued`",
        "perHour",
        "`cost`, `kilowatts`, `accelerators` since `until`; absent once the sums are final.",
    ),
    (_SCALING, "remarks", "What holds the number back: reasons of conditions."),
    (
        "`signals` of it, and of its `gateway`",
        "lateShareLow lateShareHigh",
        "Share of requests beyond the target: at least, and at most.",
    ),
    ("`predicted` of it", "targetSeconds", "The longest that is allowed."),
    (
        "`status.discovered` of a pool",
        "hardware machineTypes cloudPools capacityType cpu sharing interNode intraNode storage",
        "What labels said, or where a figure is from.",
    ),
)


def open_fields() -> str:
    """The section."""
    return "".join((_HEAD, *_lines()))


def _lines() -> Iterator[str]:
    for where, fields, meaning in _ROWS:
        yield f"| {where} | {', '.join(f'`{each}`' for each in fields.split())} | {meaning} |\n"
