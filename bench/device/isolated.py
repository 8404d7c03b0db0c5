"""Each measurement in a process of its own, so that none sees another's memory, crash or hang."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
"""Else what asks at import whether there is an accelerator leaves forks unable to use it."""
_FORKS = multiprocessing.get_context("fork")
"""Libraries are imported once; the parent never touches the accelerator, so a fork may."""


def isolated(measure: Callable[..., Any], *arguments: object, limit_seconds: float) -> Any | str:
    """What ``measure`` returns, or why there is nothing, in one line."""
    ours, theirs = _FORKS.Pipe(duplex=False)
    child = _FORKS.Process(target=_send, args=(theirs, measure, arguments))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit_seconds) else f"took over {limit_seconds:.3g} s"
    except EOFError:
        return "its process ended"
    finally:
        child.kill()
        child.join()


def _send(pipe: Any, measure: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    try:
        pipe.send(measure(*arguments))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {str(error).splitlines()[0]}")
