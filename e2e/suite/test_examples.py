"""Every example of the repository, with images of ours, on the nodes of the profile."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from e2e.controlplane.client import Client, Object
from e2e.controlplane.supervised import REPOSITORY
from e2e.kind.images import WORKLOADS
from e2e.suite.doubles import RENDEZVOUS_SECONDS
from e2e.suite.fleet import CPU, H100, L40S, pool_of
from e2e.workloads import Observer, condition, with_environment, with_image

pytestmark = pytest.mark.core

EXAMPLES = REPOSITORY / "examples"
RUN_SECONDS = "20"


@dataclass(frozen=True)
class Expected:
    """Where an example runs, and what binds it there; no pool: it can run nowhere here."""

    accelerator: str
    bottleneck: str


EXPECTED = {
    "chat": Expected(L40S, "MemoryBandwidth"),
    "defect-vision": Expected(L40S, "Input"),
    "llama-8b": Expected(H100, "Compute"),
    "summaries": Expected(H100, "Compute"),
    "support-lora": Expected(H100, "Compute"),
    "embeddings": Expected(CPU, "Compute"),
    "llama-70b": Expected("", ""),
}
"""In the order in which they are applied, one decision after the other: what comes first takes its
best pool, and what may grow takes what that leaves. The adapters cost the same to a tenth of a per
cent on both, so they train where they are done in a quarter of the time."""


def test_every_example_is_expected_somewhere() -> None:
    assert {each["metadata"]["name"] for each in examples()} == EXPECTED.keys()


def test_each_runs_where_its_bottleneck_says(
    client: Client, observer: Observer, namespace: str
) -> None:
    by_name = {each["metadata"]["name"]: each for each in examples()}
    created = []
    for name in EXPECTED:
        workload = client.create(ours(by_name[name], namespace))
        created.append(observer.wait(workload, is_placed_or_not))
    for workload in created:
        expected = EXPECTED[workload["metadata"]["name"]]
        if expected.accelerator:
            workload = observer.wait_condition(workload, "Ready", "True")
        check(client, workload, expected)


def check(client: Client, workload: Object, expected: Expected) -> None:
    """Pool and bottleneck, and a reason for every pool that was not taken."""
    plan = workload["status"]["plan"]
    if not expected.accelerator:
        assert condition(workload, "Planned")["reason"] == "NoFeasiblePool"
    else:
        assert plan["pool"] == pool_of(client, expected.accelerator)["metadata"]["name"]
        assert plan["bottleneck"] == expected.bottleneck
    for candidate in plan["candidates"]:
        assert candidate.get("chosen") or candidate["reason"]


def is_placed_or_not(workload: Object) -> bool:
    return bool(condition(workload, "Placed"))


def examples() -> list[Object]:
    files = sorted(EXAMPLES.glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def ours(example: Object, namespace: str) -> Object:
    """The example in a namespace, with our doubles for images that nobody publishes."""
    placed = {**example, "metadata": {**example["metadata"], "namespace": namespace}}
    if example["kind"] == "TrainingJob":
        return with_environment(
            with_image(placed, WORKLOADS),
            E2E_RUN_SECONDS=RUN_SECONDS,
            E2E_RENDEZVOUS_TIMEOUT_SECONDS=RENDEZVOUS_SECONDS,
        )
    if example["spec"].get("engine", {}).get("type") == "custom":
        custom = with_image(placed, WORKLOADS)
        custom["spec"]["run"]["command"] = ["vllm", "serve", "encoder", "--port=8000"]
        return custom
    return placed
