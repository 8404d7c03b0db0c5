"""Each measurement in a process of its own, so that none sees another's memory, crash or hang."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import Any, TypeVar

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
"""Else what asks at import whether there is an accelerator leaves forks unable to use it."""

_FORKS = multiprocessing.get_context("fork")
"""Libraries are imported once; the parent never touches the accelerator, so a fork may."""
T = TypeVar("T")


class NotMeasured(Exception):
    """Says why, in one line."""


def isolated(measure: Callable[..., T], *arguments: object, limit_seconds: float) -> T:
    """What ``measure`` returns; :class:`NotMeasured` where it fails, dies or takes too long."""
    ours, theirs = _FORKS.Pipe(duplex=False)
    child = _FORKS.Process(target=_send, args=(theirs, measure, arguments))
    child.start()
    theirs.close()
    try:
        if not ours.poll(limit_seconds):
            raise NotMeasured(f"took over {limit_seconds:.3g} s")
        found: T
        problem: str
        found, problem = ours.recv()
    except EOFError:
        raise NotMeasured("its process ended") from None
    finally:
        child.kill()
        child.join()
    if problem:
        raise NotMeasured(problem)
    return found


def _send(pipe: Any, measure: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    try:
        pipe.send((measure(*arguments), ""))
    except Exception as error:
        pipe.send((None, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"))
