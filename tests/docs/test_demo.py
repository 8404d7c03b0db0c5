"""What README.md and docs/development.md say of ``make demo`` and the clusters of ``make``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def shown(beginning: str) -> Command:
    """The command of README.md that begins so."""
    every = [step for step in steps(REPOSITORY / "README.md") if isinstance(step, Command)]
    [found] = [each for each in every if each.text.startswith(beginning)]
    return found


def test_the_demo_places_the_examples(demo: Demo) -> None:
    assert demo.started.returncode == 0, demo.started.stdout
    for name in ("chat", "embeddings", "defect-vision", "llama-70b"):
        assert name in demo.started.stdout
    assert f"export KUBECONFIG={demo.environment['KUBECONFIG']}" in demo.started.stderr


def test_explain_tells_what_the_readme_shows(demo: Demo) -> None:
    command = shown("poolwise explain")
    explained = run(command.text, demo.folder, demo.environment)
    assert explained.returncode == 0, explained.stderr
    assert prints(command.printed, explained.stdout), explained.stdout


def test_a_cluster_to_play_with(demo: Demo) -> None:
    up = run("make -s cluster-up NODES=gke-a3-g2 CLUSTER=pages", demo.folder)
    down = run("make cluster-down CLUSTER=pages", demo.folder)
    assert up.returncode == down.returncode == 0, up.stderr + down.stderr
    assert "KUBECONFIG=" in up.stdout
