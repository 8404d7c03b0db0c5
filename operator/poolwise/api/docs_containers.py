"""What docs/api.md says of containers: what they get, and where clients reach a service."""

from __future__ import annotations

from collections.abc import Iterator

_VARIABLES = (
    (
        ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_RDZV_ENDPOINT"),
        "For torchrun: pods, processes in each, which pod this is, where rank 0 waits.",
    ),
    (("MASTER_ADDR", "MASTER_PORT"), "The same place, as other launchers read it."),
    (
        ("WORLD_SIZE", "RANK"),
        "Pods, and which this is, where one process runs in each: launchers of more set their own.",
    ),
    (("POOLWISE_NODES", "POOLWISE_NODE_RANK"), "The same, whatever runs in them."),
    (
        (
            *(
                f"POOLWISE_{each}_PARALLEL"
                for each in ("DATA", "TENSOR", "PIPELINE", "EXPERT", "CONTEXT")
            ),
            "POOLWISE_ZERO_STAGE",
            "POOLWISE_MICRO_BATCH_SIZE",
        ),
        "The layout that was chosen, or given.",
    ),
    (("POOLWISE_RECOMPUTE",), "`None`, `Selective` or `Full`."),
    (("POOLWISE_CHECKPOINT_DIR",), "`checkpoint.path`, where checkpoints are asked for."),
    (
        ("POOLWISE_ATTEMPT",),
        "How often it was started before: the failures of this pod in a Job, the restarts of all"
        " pods in a JobSet.",
    ),
)
"""Of a run's environment, and what they say."""
_ENVIRONMENT = """\
## What a training container gets

Variables of its environment, usable as `$(NAME)` in `run.command` and `run.args`. One that
`run.env` gives as well is the user's, but for names that begin with `POOLWISE_`.

| variable | meaning |
|---|---|
"""
_SERVING = """
## What a serving container gets, and where clients reach it

A service answers at `http://NAME.NAMESPACE`, a Service of its name on port 80, and speaks there
what its engine speaks. vLLM and SGLang speak OpenAI's API; the model is called as the
InferenceService is (`"model": "chat"`). A name that no Service may have is shortened: `kubectl get
services -l poolwise.dev/owner-kind=InferenceService` shows them.

| what | in the container |
|---|---|
"""
_OF_SERVING = (
    (
        "port of its API",
        "That of `run.ports` that is named `http`, else `engine.metricsPort`. Triton: 8000, and"
        " 8002 for its metrics where `engine.metricsPort` is 8000 too.",
    ),
    (
        "weights of `hf://ORGANIZATION/MODEL`",
        "The engine downloads them. Where the model asks for a login, give it a token in `run.env`:"
        " `{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hugging-face, key: token}}}`.",
    ),
    ("weights of `pvc://CLAIM/PATH`", "`/mnt/models/PATH`, read only."),
    (
        "weights of `oci://REGISTRY/REPOSITORY:TAG`",
        "`/mnt/models`, read only, as an image volume"
        " ([which Kubernetes has them](compatibility.md#kubernetes)).",
    ),
    (
        "no `model.uri`",
        "Weights are those of the preset on Hugging Face; `custom` brings its own.",
    ),
    ("`modelCache`", "`/mnt/model-cache`; `HF_HOME` and `VLLM_CACHE_ROOT` lead there."),
    ("`/dev/shm`", "1 GiB for each accelerator, at least 1 GiB."),
    ("on CPU", "`OMP_NUM_THREADS`, and for vLLM `VLLM_CPU_KVCACHE_SPACE`."),
    (
        "arguments",
        "[What the plan sets](scaling.md#how-each-replicas-engine-is-sized), then `run.args` and"
        " `engine.args`, which win. `custom` gets yours alone.",
    ),
    (
        "ready",
        "When `GET /health` on the port of its API answers 200 (Triton: `/v2/health/ready`); for"
        " `custom`, when that port takes connections.",
    ),
)
"""What a replica's container finds, and where."""


def containers() -> str:
    """Both sections."""
    return "".join((_ENVIRONMENT, *_variables(), _SERVING, *_served()))


def _variables() -> Iterator[str]:
    for names, meaning in _VARIABLES:
        yield f"| {', '.join(f'`{each}`' for each in names)} | {meaning} |\n"


def _served() -> Iterator[str]:
    for what, meaning in _OF_SERVING:
        yield f"| {what} | {meaning} |\n"
