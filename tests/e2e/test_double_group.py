"""Engines of one replica on several nodes, as programs: they meet, serve, and end together."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane import ports
from e2e.images.double.arguments import read
from e2e.images.double.group import Place, joined

VLLM = Path(__file__).parents[2] / "e2e" / "images" / "bin" / "vllm"
END_SECONDS = 20


class Group:
    """A leader and its workers, with a port to meet at and one to answer on."""

    def __init__(self, nodes: int) -> None:
        self.meeting, self.http = ports.free(2)
        self.nodes = nodes
        self.ranks: dict[int, subprocess.Popen[str]] = {}

    def start(self, rank: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-IB", str(VLLM), "serve", "m", "--tensor-parallel-size=8"]
        command += [f"--pipeline-parallel-size={self.nodes}", f"--nnodes={self.nodes}"]
        command += [f"--node-rank={rank}", "--master-addr=127.0.0.1", "--host=127.0.0.1"]
        command += [f"--master-port={self.meeting}", f"--port={self.http}"]
        command += ["--headless"] if rank else []
        self.ranks[rank] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        return self.ranks[rank]

    def wait_until_it_answers(self) -> None:
        stderr = self.ranks[0].stderr
        assert stderr is not None
        while "answers on port" not in (line := stderr.readline()):
            assert line, "it ended"

    def models(self) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v1/models") as answer:
            body: bytes = answer.read()
        return body

    def end(self) -> None:
        for process in self.ranks.values():
            process.kill()
            process.communicate()


@pytest.fixture
def group() -> Iterator[Group]:
    """Three ranks, none started."""
    made = Group(3)
    yield made
    made.end()


def test_the_leader_answers_once_all_are_there(group: Group) -> None:
    group.start(0)
    group.start(2)
    with pytest.raises(OSError):
        group.models()
    group.start(1)
    group.wait_until_it_answers()
    assert b'"id": "m"' in group.models()


@pytest.mark.parametrize("dies", [0, 1])
def test_a_rank_that_is_lost_takes_the_others_with_it(group: Group, dies: int) -> None:
    for rank in range(3):
        group.start(rank)
    group.wait_until_it_answers()
    group.ranks[dies].kill()
    for rank in {0, 1, 2} - {dies}:
        assert group.ranks[rank].wait(END_SECONDS) == 1


def test_who_is_told_to_end_before_the_others_came_ends_well(group: Group) -> None:
    leader, worker = group.start(0), group.start(1)
    for process in (leader, worker):
        assert process.stderr is not None
        assert "meets at 127.0.0.1" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nnodes=3", "--tensor-parallel-size=8"], "must divide the 8 devices"),
        (["--nnodes=2", "--tensor-parallel-size=8", "--node-rank=2"], "from 0 to 1"),
        (["--nnodes=2", "--tensor-parallel-size=8", "--node-rank=1"], "--headless"),
        (["--nnodes=2", "--tensor-parallel-size=8", "--headless"], "--headless"),
    ],
)
def test_what_makes_no_group_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(["serve", "m", *words], {})


def test_one_node_is_no_group() -> None:
    assert read(["serve", "m"], {}).place is None


async def is_reset(place: Place) -> None:
    """Meet the leader, and break off without an end."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    writer.write(b"1\n")
    assert await reader.readline() == b"met\n"
    at_once = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.transport.abort()


def test_a_rank_that_is_killed_before_it_read_everything_is_lost_as_well() -> None:
    """Its connection is reset then, which is no end of what it sent."""
    [port] = ports.free(1)
    place = Place(nodes=2, rank=0, host="127.0.0.1", port=port)

    async def play() -> None:
        async with asyncio.timeout(END_SECONDS):
            leading = asyncio.create_task(until_lost(place))
            while not leading.done():
                try:
                    await is_reset(place)
                    break
                except OSError:  # it does not listen yet
                    await asyncio.sleep(0.01)
            await leading

    asyncio.run(play())


async def until_lost(place: Place) -> None:
    async with joined(place) as lost:
        await lost.wait()
