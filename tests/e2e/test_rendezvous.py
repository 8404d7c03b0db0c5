"""The played torchrun: who meets whom, who waits, who fails, and with what sentence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from e2e.controlplane import ports
from e2e.images.rendezvous.rank import Rank, RendezvousFailed
from e2e.images.rendezvous.round import Member, Refused, Round, check_met
from e2e.images.rendezvous.settings import BadSetting, Settings, from_environment
from e2e.images.rendezvous.store import Store

TORCHRUN = Path(__file__).parents[2] / "e2e" / "images" / "bin" / "torchrun"

GOLDEN = Path(__file__).parents[1] / "plan" / "golden" / "training-two-nodes.yaml"


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


def fast(world_size: int, **changes: object) -> Settings:
    """Settings for ranks inside one process, on a free port of this machine."""
    (port,) = ports.free(1)
    settings = from_environment(
        {
            "PET_NPROC_PER_NODE": str(world_size),
            "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
            "E2E_RENDEZVOUS_TIMEOUT_SECONDS": "60",
        }
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


async def both(settings: Settings, *ranks: Rank) -> list[dict[str, object]]:
    async with Store(settings, "127.0.0.1"):
        return list(await asyncio.gather(*(rank.run() for rank in ranks)))


def test_ranks_meet_and_take_their_steps_together() -> None:
    settings = fast(3, run_seconds=0.05, step_seconds=0.01)
    ranks = [Rank(settings, number, host=f"host-{number}") for number in range(3)]
    results = asyncio.run(both(settings, *ranks))
    assert [result["ranks"] for result in results] == [[0, 1, 2]] * 3
    assert results[0]["hosts"] == {"0": "host-0", "1": "host-1", "2": "host-2"}
    assert [rank.steps_done for rank in ranks] == [5, 5, 5]


def test_ranks_that_come_before_the_store_wait_for_it() -> None:
    async def late_store() -> dict[str, object]:
        settings = fast(1)
        rank = Rank(settings, 0)
        early = asyncio.create_task(rank.run())
        while not rank._last_error:
            await asyncio.sleep(0.01)
        async with Store(settings, "127.0.0.1"):
            return await early

    assert asyncio.run(late_store())["ranks"] == [0]


def test_who_is_missing_is_said_at_the_end_of_the_time() -> None:
    settings = fast(4, timeout_seconds=3.0)
    with pytest.raises(RendezvousFailed) as raised:
        asyncio.run(both(settings, Rank(settings, 0)))
    assert str(raised.value) == "not all 4 ranks met within 3 s; missing: 1, 2, 3"


def test_a_store_that_is_nowhere_is_said_with_the_reason() -> None:
    settings = fast(2, timeout_seconds=0.1, host="nowhere.invalid")
    with pytest.raises(
        RendezvousFailed, match=r"^no rendezvous at nowhere.invalid:\d+ within 0.1 s"
    ):
        asyncio.run(Rank(settings, 1).run())


def test_a_lost_rank_is_replaced_and_the_run_goes_on() -> None:
    """The survivor joins the next round, and no step is taken twice."""

    async def replaced() -> tuple[Rank, Rank]:
        settings = fast(2, run_seconds=3600.0, step_seconds=0.01)
        survivor, first = Rank(settings, 0), Rank(settings, 1)
        async with Store(settings, "127.0.0.1"):
            running = asyncio.create_task(survivor.run())
            lost = asyncio.create_task(first.run())
            while first.steps_done < 3:
                await asyncio.sleep(0.01)
            lost.cancel()
            await asyncio.wait([lost])
            done = first.steps_done
            short = replace(settings, run_seconds=(done + 5) * settings.step_seconds)
            survivor.settings = short
            successor = Rank(short, 1)
            await asyncio.gather(running, successor.run())
        return survivor, successor

    survivor, successor = asyncio.run(replaced())
    assert (survivor.rounds, successor.rounds) == (2, 1)
    assert survivor.steps_done == successor.steps_done == survivor.settings.steps


def test_ranks_wait_for_a_store_that_comes_back() -> None:
    async def store_restarts() -> int:
        settings = fast(2, run_seconds=0.2, step_seconds=0.01)
        ranks = [Rank(settings, number) for number in range(2)]
        tasks = [asyncio.create_task(rank.run()) for rank in ranks]
        async with Store(settings, "127.0.0.1"):
            while ranks[1].steps_done < 3:
                await asyncio.sleep(0.001)
        async with Store(settings, "127.0.0.1"):
            await asyncio.gather(*tasks)
        return ranks[1].rounds

    assert asyncio.run(store_restarts()) == 2


def test_a_silent_holder_of_a_rank_gives_it_up() -> None:
    """A node that vanished sends no word of it: its connection is dropped when it falls silent."""

    async def silent() -> dict[str, object]:
        settings = fast(1, silence_seconds=0.3)
        async with Store(settings, "127.0.0.1"):
            reader, writer = await asyncio.open_connection(settings.host, settings.port)
            join = {"rank": 0, "world_size": 1, "host": "gone", "steps_done": 0}
            writer.write(json.dumps(join).encode() + b"\n")
            await reader.readline()
            result = await Rank(replace(settings, heartbeat_seconds=0.05), 0, host="new").run()
            writer.close()
            return result

    assert asyncio.run(silent())["hosts"] == {"0": "new"}


class Node:
    """One node's torchrun, as a process."""

    def __init__(self, settings: Mapping[str, str], node_rank: int) -> None:
        environment = {**os.environ, **settings, "PET_NODE_RANK": str(node_rank)}
        command = [sys.executable, "-IB", str(TORCHRUN), "--no-python", "train"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait(self) -> tuple[int, str, str]:
        """Its exit status and what it wrote."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


@pytest.fixture
def job() -> Mapping[str, str]:
    (port,) = ports.free(1)
    return {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "2",
        "PET_RDZV_ENDPOINT": f"localhost:{port}",
        "E2E_RENDEZVOUS_TIMEOUT_SECONDS": "60",
    }


@pytest.fixture
def nodes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_two_nodes_meet_and_each_prints_one_line(job: Mapping[str, str], nodes: ExitStack) -> None:
    started = [nodes.enter_context(Node(job, number)) for number in (1, 0)]
    for node, local in zip(started, ([2, 3], [0, 1]), strict=True):
        status, output, errors = node.wait()
        assert status == 0, errors
        report = json.loads(output)
        assert report["result"] == "met"
        assert report["ranks"] == [0, 1, 2, 3]
        assert report["localRanks"] == local
        assert report["worldSize"] == 4


def test_a_rank_that_fails_ends_its_node_and_its_next_attempt_joins(
    job: Mapping[str, str], nodes: ExitStack
) -> None:
    """As Kubernetes restarts the pod of one index; the other node's pod goes on."""
    job = {**job, "E2E_FAIL_RANK": "2"}
    first = nodes.enter_context(Node(job, 0))
    status, _, errors = nodes.enter_context(Node(job, 1)).wait()
    assert status == 1
    assert "torchrun: node 1, rank 2: fails in attempt 0, as E2E_FAIL_RANK=2 asks for" in errors
    again = nodes.enter_context(Node({**job, "POOLWISE_ATTEMPT": "1"}, 1))
    assert again.wait()[0] == 0
    status, output, _ = first.wait()
    assert status == 0
    assert json.loads(output)["rounds"] == 2


def test_nodes_that_disagree_on_the_size_fail_at_once(
    job: Mapping[str, str], nodes: ExitStack
) -> None:
    nodes.enter_context(Node(job, 0))
    status, output, errors = nodes.enter_context(Node({**job, "PET_NNODES": "3"}, 1)).wait()
    assert (status, output) == (1, "")
    assert "expects 6 ranks, node 0 expects 4" in errors


def test_sigterm_ends_a_node_that_waits(job: Mapping[str, str], nodes: ExitStack) -> None:
    node = nodes.enter_context(Node(job, 0))
    assert node.process.stderr is not None
    assert "node 0 of 2" in node.process.stderr.readline()
    node.process.send_signal(signal.SIGTERM)
    assert node.wait()[0] == 128 + signal.SIGTERM


def test_bad_settings_end_the_program_with_one_line(nodes: ExitStack) -> None:
    status, output, errors = nodes.enter_context(Node({"PET_NNODES": "two"}, 0)).wait()
    assert (status, output) == (1, "")
    assert errors == "torchrun: PET_NNODES=two: must be a whole number\n"
