"""What torchrun reads from its environment and options, and what tests set beside it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

DEFAULT_PORT = 29500
MAX_PORT = 65535


class BadSetting(ValueError):
    """A value that torchrun would refuse, too; its text is the sentence to print."""


@dataclass(frozen=True)
class Settings:
    """One node's share of a job."""

    nodes: int
    processes_per_node: int
    node_rank: int
    host: str
    port: int
    timeout_seconds: float
    run_seconds: float
    step_seconds: float
    fail_rank: int
    fail_attempts: int
    attempt: int
    heartbeat_seconds: float = 2.0
    silence_seconds: float = 10.0
    """A peer that sends nothing for so long is lost: its node may have vanished without a word."""

    @property
    def world_size(self) -> int:
        """Ranks of the whole job."""
        return self.nodes * self.processes_per_node

    @property
    def ranks(self) -> range:
        """Global ranks of this node."""
        first = self.node_rank * self.processes_per_node
        return range(first, first + self.processes_per_node)

    @property
    def steps(self) -> int:
        """How many steps the run has."""
        return round(self.run_seconds / self.step_seconds)

    @property
    def endpoint(self) -> str:
        """Where the store is, for messages."""
        return f"{self.host}:{self.port}"

    def fails(self, rank: int) -> bool:
        """Whether a test wants this rank to fail in this attempt."""
        return rank == self.fail_rank and self.attempt < self.fail_attempts


def from_environment(environment: Mapping[str, str], words: Sequence[str] = ()) -> Settings:
    """Read the settings; options of the command line go before the environment, as in torchrun.

    Raises :class:`BadSetting`.
    """
    values = {**environment, **_options(words)}
    host, port = _endpoint(values)
    settings = Settings(
        nodes=_read(values, "PET_NNODES", int, 1, least=1),
        processes_per_node=_read(values, "PET_NPROC_PER_NODE", int, 1, least=1),
        node_rank=_read(values, "PET_NODE_RANK", int, 0),
        host=host,
        port=port,
        timeout_seconds=_read(values, "E2E_RENDEZVOUS_TIMEOUT_SECONDS", float, 300.0),
        run_seconds=_read(values, "E2E_RUN_SECONDS", float, 0.0),
        step_seconds=_read(values, "E2E_STEP_SECONDS", float, 0.5, least=0.01),
        fail_rank=_read(values, "E2E_FAIL_RANK", int, -1, least=-1),
        fail_attempts=_read(values, "E2E_FAIL_ATTEMPTS", int, 1),
        attempt=_read(values, "POOLWISE_ATTEMPT", int, 0),
    )
    if settings.node_rank >= settings.nodes:
        raise BadSetting(
            f"PET_NODE_RANK={settings.node_rank}: must be less than PET_NNODES={settings.nodes}"
        )
    return settings


Number = TypeVar("Number", int, float)


def _read(
    values: Mapping[str, str],
    name: str,
    number: Callable[[str], Number],
    default: Number,
    least: float = 0,
) -> Number:
    text = values.get(name) or str(default)
    try:
        value = number(text)
    except ValueError:
        kind = "a whole number" if number is int else "a number"
        raise BadSetting(f"{name}={text}: must be {kind}") from None
    if value < least:
        raise BadSetting(f"{name}={text}: must be at least {least}")
    return value


def _endpoint(values: Mapping[str, str]) -> tuple[str, int]:
    """``PET_RDZV_ENDPOINT``, else ``MASTER_ADDR`` and ``MASTER_PORT``, else this machine."""
    address = values.get("MASTER_ADDR") or "127.0.0.1"
    text = (
        values.get("PET_RDZV_ENDPOINT") or f"{address}:{values.get('MASTER_PORT') or DEFAULT_PORT}"
    )
    host, _, port = text.rpartition(":")
    if not host:
        host, port = text, str(DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise BadSetting(
            f"PET_RDZV_ENDPOINT={text}: must be HOST:PORT, with a port up to {MAX_PORT}"
        )
    return host, int(port)


def _options(words: Sequence[str]) -> dict[str, str]:
    """Options of torchrun that say the same as its variables; the others are accepted."""
    parser = argparse.ArgumentParser(prog="torchrun", add_help=False, allow_abbrev=False)
    names = ("nnodes", "nproc-per-node", "node-rank", "rdzv-endpoint")
    for name in names:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}")
    parser.add_argument("script", nargs=argparse.REMAINDER)
    given = vars(parser.parse_known_args(list(words))[0])
    keys = {name.replace("-", "_") for name in names}
    return {f"PET_{key.upper()}": value for key, value in given.items() if key in keys and value}
