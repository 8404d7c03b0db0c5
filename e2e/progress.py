"""Say what is being done while it is done: a line at once, then one about every ten seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.errors import BuildFailed

PERIOD_SECONDS = 10.0


def say(line: str) -> None:
    """Print a line of progress to stderr, so that stdout stays for what was asked for."""
    print(line, file=sys.stderr, flush=True)


def elapsed(seconds: float) -> str:
    """``95`` as ``1 min 35 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, indented under the sentence that quotes it."""
    try:
        with log.open(errors="replace") as lines:
            end = deque(lines, maxlen=count)
    except FileNotFoundError:
        return "    (it wrote no log)"
    return "".join(f"    {line.rstrip()}\n" for line in end).rstrip() or "    (its log is empty)"


@dataclass(frozen=True)
class Command:
    """A command worth watching: what to call it, what to run, where, and where its output goes."""

    title: str
    arguments: Sequence[object]
    folder: Path
    log: Path
    environment: Mapping[str, str]

    def run(self) -> None:
        """Run to the end, with a line about every ten seconds.

        Raises :class:`BuildFailed` with the last lines of the output.
        """
        started = time.monotonic()
        with self.log.open("w") as output:
            process = subprocess.Popen(
                [str(argument) for argument in self.arguments],
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                self._watch(process, started)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            raise BuildFailed(
                f"{self.title} failed with exit status {process.returncode}:\n"
                f"{last_lines(self.log)}\n    (all of it: {self.log})"
            )

    def _watch(self, process: subprocess.Popen[bytes], started: float) -> None:
        while True:
            try:
                process.wait(PERIOD_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"    {self.title}: {elapsed(time.monotonic() - started)} so far")
            else:
                return
