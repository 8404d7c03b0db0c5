"""A kind cluster that does not come up: programs in the place of kind and docker say how."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.errors import ProcessFailed
from e2e.kind.cluster import TRIES, KindCluster

KIND = """#!/bin/sh
echo "$1" >> calls
case $1 in
  create) [ "$(grep -c create calls)" -gt {failures} ] || { echo "failed to join"; exit 1; } ;;
  get) echo x-worker x-worker2 ;;
esac
"""
DOCKER = """#!/bin/sh
case "$*" in
  *"x-worker2 curl"*) exit 7 ;;
  *journalctl*) echo "too many open files" ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where both programs lie, docker found by its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("KIND_NODE_IMAGE", "any")
    return tmp_path


def cluster(machine: Path, failures: int) -> KindCluster:
    """One that comes up after so many failures."""
    for name, program in (("kind", KIND.replace("{failures}", str(failures))), ("docker", DOCKER)):
        file = machine / name
        file.write_text(program)
        file.chmod(0o755)
    return KindCluster({"kind": machine / "kind"})


def test_a_cluster_that_failed_by_chance_is_made_anew(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(machine, failures=1) as made:
        assert made.kubeconfig.parent.is_dir()
        said = capsys.readouterr()
        assert "failed to join" in said.out + said.err
        assert (
            "the kubelet of x-worker2 is not healthy:\ntoo many open files" in said.out + said.err
        )
        assert "x-worker is" not in said.out + said.err
    assert (machine / "calls").read_text().split() == [
        "create",
        "get",
        "delete",
        "create",
        "delete",
    ]


def test_one_that_fails_each_time_says_so_and_leaves_nothing(machine: Path) -> None:
    wanted = cluster(machine, failures=TRIES)
    with pytest.raises(ProcessFailed, match=r"failed to join\n.*x-worker2 is not healthy"), wanted:
        pass
    assert (machine / "calls").read_text().split() == ["create", "get", "delete"] * TRIES
    assert not wanted.kubeconfig.parent.exists()
