"""``torchrun``: starts this node's ranks, hosts the store on node 0, and reports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

from e2e.images.rendezvous.rank import Rank, RendezvousFailed
from e2e.images.rendezvous.settings import BadSetting, Settings, from_environment
from e2e.images.rendezvous.store import Store

POLL_SECONDS = 0.05
STOP_SECONDS = 5.0
TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Worker:
    """The process of one rank, and the end of the pipe on which it tells its result."""

    rank: int
    process: BaseProcess
    results: Pipe

    def result(self) -> Mapping[str, Any]:
        """What it told, or what its end tells."""
        with contextlib.suppress(EOFError):
            if self.results.poll():
                told: Mapping[str, Any] = self.results.recv()
                return told
        return {"error": f"ended with exit status {self.process.exitcode}"}


def main() -> NoReturn:
    """Exit 0 when all ranks met and ended together, 1 otherwise, 143 when told to stop."""
    # At once: the first process of a container ignores signals that it does not handle. Only noted:
    # what is raised while the interpreter forks or frees a lock is printed and goes no further.
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        settings = from_environment(os.environ, sys.argv[1:])
    except BadSetting as error:
        sys.exit(f"torchrun: {error}")
    _say(
        f"node {settings.node_rank} of {settings.nodes}: ranks {settings.ranks[0]} to "
        f"{settings.ranks[-1]} of {settings.world_size}, rendezvous at {settings.endpoint}"
    )
    started = time.monotonic()
    workers = [_start(settings, rank) for rank in settings.ranks]
    try:
        failed = asyncio.run(_watch(settings, workers, told))
    finally:
        _stop(workers)
    if told:
        sys.exit(TERMINATED)
    if failed is not None:
        _say(f"node {settings.node_rank}, rank {failed.rank}: {failed.result()['error']}")
        sys.exit(1)
    print(json.dumps(_report(settings, workers, time.monotonic() - started)), flush=True)
    sys.exit(0)


def _say(line: str) -> None:
    print(f"torchrun: {line}", file=sys.stderr, flush=True)


def _start(settings: Settings, rank: int) -> Worker:
    """Fork: eight ranks then share one interpreter's memory."""
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)
    process = fork.Process(target=_rank_process, args=(settings, rank, sending), daemon=True)
    process.start()
    sending.close()
    return Worker(rank, process, receiving)


def _rank_process(settings: Settings, rank: int, results: Pipe) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        results.send(asyncio.run(_with_parent(Rank(settings, rank))))
    except RendezvousFailed as error:
        results.send({"error": str(error)})
        sys.exit(1)


async def _with_parent(rank: Rank) -> dict[str, Any]:
    """Run the rank for as long as the agent lives."""
    parent = os.getppid()
    run = asyncio.create_task(rank.run())
    while not run.done():
        await asyncio.wait([run], timeout=1.0)
        if os.getppid() != parent:
            os._exit(1)
    return run.result()


async def _watch(
    settings: Settings, workers: Sequence[Worker], told: Sequence[int]
) -> Worker | None:
    """Until all ranks have ended, a signal has ``told`` to stop, or the first has failed, which is
    returned."""
    async with _store(settings):
        while not told:
            ended = [each for each in workers if each.process.exitcode is not None]
            if failed := next((each for each in ended if each.process.exitcode), None):
                return failed
            if len(ended) == len(workers):
                return None
            await asyncio.sleep(POLL_SECONDS)
    return None


@contextlib.asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[None]:
    """The store, on node 0 alone."""
    if settings.node_rank:
        yield
        return
    async with Store(settings):
        yield


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        worker.process.kill()


def _report(settings: Settings, workers: Sequence[Worker], seconds: float) -> dict[str, Any]:
    """One line for tests to read from the pod's log."""
    results = {worker.rank: worker.result() for worker in workers}
    first = results[settings.ranks[0]]
    return {
        "result": "met",
        "node": settings.node_rank,
        "nodes": settings.nodes,
        "worldSize": settings.world_size,
        "localRanks": list(settings.ranks),
        "ranks": first["ranks"],
        "hosts": first["hosts"],
        "rounds": first["rounds"],
        "steps": settings.steps,
        "attempt": settings.attempt,
        "seconds": round(seconds, 3),
    }
