"""Where the manifests of others' controllers come from, and what is said where there are none."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from e2e.kind.command import Completed
from e2e.kind.integrations import (
    CACHE_VARIABLE,
    FOLDER_VARIABLE,
    JOB_SET,
    LEADER_WORKER_SET,
    TRAINER,
    Integration,
    Unavailable,
    installed,
)
from e2e.tools.catalog import TRAINER as TRAINER_TOOL

ALL = (JOB_SET, LEADER_WORKER_SET, TRAINER)


class Cluster:
    """kubectl, remembered; it refuses the verbs in ``refuses``."""

    def __init__(self, *refuses: str) -> None:
        self.refuses = refuses
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *words: str, stdin: str = "") -> Completed:
        self.asked.append(words)
        code = 1 if words[0] in self.refuses else 0
        return subprocess.CompletedProcess(["kubectl", *words], code, "", "no route to host")

    @property
    def verbs(self) -> list[str]:
        return [words[0] for words in self.asked]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of manifests, and none that somebody else prepared."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "none"))
    return tmp_path


@pytest.mark.parametrize("integration", ALL, ids=lambda each: each.name)
def test_a_folder_is_taken_and_removed_again(integration: Integration, folder: Path) -> None:
    manifest = folder / f"{integration.name}.yaml"
    manifest.write_text("")
    cluster = Cluster()
    with installed(integration, cluster, ""):
        assert cluster.verbs == ["apply", "rollout", "create"]
        assert str(manifest) in cluster.asked[0]
    assert cluster.verbs[-1] == "delete"


def test_without_a_folder_it_is_the_projects_own_release(folder: Path) -> None:
    cluster = Cluster()
    with installed(JOB_SET, cluster, ""):
        assert JOB_SET.release in cluster.asked[0]


def test_a_release_that_cannot_be_had_is_told(folder: Path) -> None:
    with (
        pytest.raises(Unavailable, match=r"lws cannot be installed here: (.|\n)*no route to host"),
        installed(LEADER_WORKER_SET, Cluster("apply"), ""),
    ):
        pytest.fail("it is not installed")


def test_what_has_no_release_says_where_it_would_come_from(folder: Path) -> None:
    with (
        pytest.raises(Unavailable, match=f"{FOLDER_VARIABLE} names no folder with trainer.yaml"),
        installed(TRAINER, Cluster(), ""),
    ):
        pytest.fail("it is not installed")


def test_the_release_of_trainer_is_the_modules() -> None:
    assert re.fullmatch(r"v2\.\d+\.\d+", TRAINER_TOOL.module.version)
