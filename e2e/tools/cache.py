"""The folder that clones share: built tools and, where Go is missing, its toolchain."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.progress import say


def root() -> Path:
    """``$POOLWISE_CACHE``, else ``$XDG_CACHE_HOME/poolwise``, else ``~/.cache/poolwise``."""
    if own := os.environ.get("POOLWISE_CACHE"):
        return Path(own).expanduser().resolve()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "poolwise"


@contextmanager
def locked(folder: Path, purpose: str) -> Iterator[None]:
    """Hold ``folder`` alone, waiting for whoever else fills it.

    The lock is the kernel's: it is gone with the process that held it, however that ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"==> another run is busy with {purpose}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
