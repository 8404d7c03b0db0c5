"""What README.md and docs/development.md say of ``make demo`` and the clusters of ``make``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.controlplane.state import State
from e2e.docs.blocks import Command, steps
from e2e.docs.matching import prints
from e2e.docs.playing import REPOSITORY, clone, run

pytestmark = pytest.mark.apiserver


@dataclass(frozen=True)
class Demo:
    """A demo that was left running, in a clone of its own."""

    folder: Path
    started: subprocess.CompletedProcess[str]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.folder / ".cluster/demo/kubeconfig")}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = clone(tmp_path_factory.mktemp("demo"))
    try:
        yield Demo(folder, run("KEEP=1 make demo", folder))
    finally:
        stopped = run("make cluster-down CLUSTER=demo", folder)
    assert stopped.returncode == 0, stopped.stderr


def shown(beginning: str, page: str = "README.md") -> Command:
    """The command of a page that begins so."""
    every = [step for step in steps(REPOSITORY / page) if isinstance(step, Command)]
    [found] = [each for each in every if each.text.startswith(beginning)]
    return found


def test_the_demo_places_the_examples(demo: Demo) -> None:
    assert demo.started.returncode == 0, demo.started.stdout
    for name in ("chat", "embeddings", "defect-vision", "llama-70b"):
        assert name in demo.started.stdout
    assert f"export KUBECONFIG={demo.environment['KUBECONFIG']}" in demo.started.stderr


def test_explain_tells_what_the_readme_shows(demo: Demo) -> None:
    command = shown(".venv/bin/poolwise explain")
    explained = run(command.text, demo.folder, demo.environment)
    assert explained.returncode == 0, explained.stderr
    assert prints(command.printed, explained.stdout), explained.stdout


def test_a_cluster_to_play_with(demo: Demo) -> None:
    up = run("make -s cluster-up NODES=gke-a3-g2 CLUSTER=pages", demo.folder)
    down = run("make cluster-down CLUSTER=pages", demo.folder)
    assert up.returncode == down.returncode == 0, up.stderr + down.stderr
    assert "KUBECONFIG=" in up.stdout


DECLARED = """
apiVersion: poolwise.dev/v1alpha1
kind: AcceleratorPool
metadata: {name: mine}
spec: {nodeSelector: {role: mine}, price: {perNodeHour: "10.00"}}
"""


def test_a_backup_is_restored_into_another_cluster(demo: Demo) -> None:
    (demo.folder / "mine.yaml").write_text(DECLARED)
    tools = Path(State.load(demo.folder / ".cluster/demo").binaries["kubectl"]).parent
    path = f"{tools}{os.pathsep}$PATH"
    restored = demo.folder / ".cluster/restored/kubeconfig"
    saving = shown("kubectl get trainingjobs", "docs/operations.md").text
    restoring = shown("kubectl apply -f pools.yaml", "docs/operations.md").text
    listed = "kubectl get trainingjobs,inferenceservices.poolwise.dev,acceleratorpools -A -o name"
    try:
        done = [
            run(f"export PATH={path} KUBECONFIG={kubeconfig}\n{text}", demo.folder)
            for kubeconfig, text in (
                (demo.environment["KUBECONFIG"], f"kubectl apply -f mine.yaml\n{saving}"),
                (restored, "make -s cluster-up CLUSTER=restored"),
                (restored, "kubectl apply --server-side -f crds/; kubectl create namespace demo"),
                (restored, "kubectl wait --for=condition=Established crd --all --timeout=30s"),
                (restored, restoring),
                (restored, listed),
            )
        ]
    finally:
        run("make cluster-down CLUSTER=restored", demo.folder)
    assert [each.stderr for each in done if each.returncode] == []
    found = {name.rpartition("/")[2] for name in done[-1].stdout.split()}
    examples = {"chat", "embeddings", "summaries", "defect-vision", "llama-70b", "llama-8b"}
    assert found == {*examples, "support-lora", "mine"}
