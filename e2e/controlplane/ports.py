"""Loopback ports that nobody holds."""

from __future__ import annotations

import itertools
import random
import socket
from dataclasses import dataclass, fields

LOOPBACK = "127.0.0.1"
CANDIDATES = range(20_000, 32_768)
"""Below the kernel's ephemeral ports, so that no outgoing connection takes one before we listen."""


@dataclass(frozen=True)
class Ports:
    """Where each process of one control plane listens."""

    etcd: int
    etcd_peers: int
    apiserver: int
    scheduler: int
    kwok: int


def choose() -> Ports:
    """Ports for one control plane."""
    return Ports(*free(len(fields(Ports))))


def free(count: int) -> list[int]:
    """Free ports, chosen at random so that two runs that start at once do not meet."""
    order = random.sample(CANDIDATES, len(CANDIDATES))
    return list(itertools.islice(filter(is_free, order), count))


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Go's servers do
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
