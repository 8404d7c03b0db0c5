"""The played torchrun: its settings, and who has joined; pure."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from e2e.images.rendezvous.round import Member, Refused, Round, check_met
from e2e.images.rendezvous.settings import BadSetting, from_environment

GOLDEN = Path(__file__).parents[1] / "plan" / "children" / "golden" / "training-two-nodes.yaml"


def rendered_environment() -> dict[str, str]:
    """The environment of node 1 as Poolwise renders it."""
    documents = yaml.safe_load_all(GOLDEN.read_text())
    (job,) = (each for each in documents if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][0] == "torchrun"
    annotation = {"PET_NODE_RANK": "1", "POOLWISE_NODE_RANK": "1", "POOLWISE_ATTEMPT": "2"}
    return {
        each["name"]: each.get("value") or annotation[each["name"]] for each in container["env"]
    }


TWO_NODES = rendered_environment()


def test_settings_are_those_that_poolwise_renders() -> None:
    settings = from_environment(TWO_NODES, ["--no-python", "pretrain", "--nnodes=9"])
    assert settings.world_size == 16
    assert settings.ranks == range(8, 16)
    assert settings.endpoint == "llama-70b-0.llama-70b-ranks:29500"
    assert settings.attempt == 2


def test_options_go_before_the_environment() -> None:
    words = ["--nnodes", "3", "--nproc_per_node=4", "--rdzv-endpoint=h:1", "train.py", "--nnodes=5"]
    settings = from_environment(TWO_NODES, words)
    assert (settings.nodes, settings.processes_per_node, settings.endpoint) == (3, 4, "h:1")


def test_one_process_alone_needs_no_settings() -> None:
    settings = from_environment({})
    assert (settings.world_size, settings.endpoint) == (1, "127.0.0.1:29500")
    assert from_environment({"MASTER_ADDR": "m", "MASTER_PORT": "7"}).endpoint == "m:7"
    assert from_environment({"PET_RDZV_ENDPOINT": "m"}).endpoint == "m:29500"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"PET_NNODES": "1:4"}, "PET_NNODES=1:4: must be a whole number"),
        ({"PET_NPROC_PER_NODE": "0"}, "PET_NPROC_PER_NODE=0: must be at least 1"),
        ({"PET_NODE_RANK": "2"}, "PET_NODE_RANK=2: must be less than PET_NNODES=2"),
        ({"PET_NODE_RANK": "-1"}, "PET_NODE_RANK=-1: must be at least 0"),
        ({"E2E_RUN_SECONDS": "soon"}, "E2E_RUN_SECONDS=soon: must be a number"),
        (
            {"PET_RDZV_ENDPOINT": "h:x"},
            "PET_RDZV_ENDPOINT=h:x: must be HOST:PORT, with a port up to 65535",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        from_environment({**TWO_NODES, **change})
    assert str(raised.value) == sentence


def joined(world_size: int) -> Round:
    """A round that all ranks have joined."""
    gathering = Round(world_size)
    for rank in range(world_size):
        gathering.join(Member(rank, world_size, f"host-{rank}"))
    return gathering


def test_a_round_is_met_when_the_last_rank_joins() -> None:
    gathering = Round(3)
    assert gathering.join(Member(2, 3, "c")) is None
    assert gathering.join(Member(0, 3, "a", steps_done=4)) is None
    assert gathering.missing == [1]
    met = gathering.join(Member(1, 3, "b"))
    assert met is not None
    assert met["ranks"] == [0, 1, 2]
    assert met["hosts"] == {0: "a", 1: "b", 2: "c"}
    assert met["steps_done"] == 4


@pytest.mark.parametrize(
    ("member", "reason", "final"),
    [
        (Member(0, 2, "other"), "rank 0 is held by host-0", False),
        (Member(1, 3, "b"), "rank 1 expects 3 ranks, node 0 expects 2", True),
        (Member(2, 2, "b"), "rank 2: there are only 2", True),
    ],
)
def test_joins_that_do_not_fit_are_refused(member: Member, reason: str, final: bool) -> None:
    gathering = Round(2)
    gathering.join(Member(0, 2, "host-0"))
    with pytest.raises(Refused) as raised:
        gathering.join(member)
    assert (str(raised.value), raised.value.final) == (reason, final)


def test_nobody_joins_a_run_that_has_ended() -> None:
    gathering = joined(1)
    assert gathering.arrive(0, "end") == {"event": "go", "barrier": "end"}
    with pytest.raises(Refused, match="the run has ended"):
        gathering.join(Member(0, 1, "a"))


def test_a_barrier_opens_when_the_last_rank_arrives() -> None:
    gathering = joined(2)
    assert gathering.arrive(1, "step 0") is None
    assert gathering.arrive(1, "step 0") is None, "one rank twice is one rank"
    assert gathering.arrive(0, "step 0") == {"event": "go", "barrier": "step 0"}


def test_a_rank_that_leaves_breaks_a_round_that_was_met_and_no_other() -> None:
    gathering = Round(2)
    gathering.join(Member(0, 2, "a"))
    assert gathering.leave(0) is None
    gathering = joined(2)
    assert gathering.leave(1) == {"event": "lost", "rank": 1, "host": "host-1"}
    gathering.begin_again()
    assert (gathering.missing, gathering.number) == ([0, 1], 2)


def test_ranks_are_checked_by_each_rank_itself() -> None:
    assert check_met({"ranks": [0, 1, 2]}, 3) is None
    for ranks in ([0, 1], [0, 1, 1], [0, 2, 1], [1, 2, 3]):
        assert "expected each of 0 to 2 once" in str(check_met({"ranks": ranks}, 3))
