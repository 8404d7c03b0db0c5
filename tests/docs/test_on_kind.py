"""What ``python -m e2e.docs`` does before, and in which order, as far as it needs no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.docs import __main__ as on_kind
from e2e.docs.blocks import Command
from e2e.docs.pages import ON_KIND
from e2e.docs.playing import REPOSITORY, clone, run
from e2e.errors import HarnessError


def test_the_cluster_is_made_first_and_deleted_last() -> None:
    commands = [step for step in on_kind.steps_on_kind() if isinstance(step, Command)]
    assert commands[0].text.startswith(f"kind create cluster --name {on_kind.CLUSTER} ")
    assert commands[-1].text.splitlines()[-1] == f"kind delete cluster --name {on_kind.CLUSTER}"
    played = {step.block.page for step in commands}
    assert played == {REPOSITORY / page for page in ON_KIND}


def test_a_cluster_of_that_name_is_left_alone() -> None:
    with pytest.raises(HarnessError, match=f"there is a kind cluster {on_kind.CLUSTER}: kind"):
        on_kind.check_room(["other", on_kind.CLUSTER])


@pytest.mark.parametrize("limit", [128, 255])
def test_a_machine_without_room_beside_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    limits = tmp_path / "max_user_instances"
    limits.write_text(f"{limit}\n")
    monkeypatch.setattr(on_kind, "INOTIFY", limits)
    on_kind.check_room([])
    with pytest.raises(HarnessError, match=f"beside the kind cluster other .*=256, it is {limit}"):
        on_kind.check_room(["other"])
    limits.write_text("256\n")
    on_kind.check_room(["other"])


def test_what_a_page_writes_stays_out_of_the_repository(tmp_path: Path) -> None:
    copy = clone(tmp_path)
    assert run("echo kind: List > nodes.yaml && rm README.md", copy).returncode == 0
    assert not (REPOSITORY / "nodes.yaml").exists()
    assert (REPOSITORY / "README.md").exists()
    setup = run("make --question .venv/.ready", copy)
    assert setup.returncode == 0, "make would set the environment up again"
