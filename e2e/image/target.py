"""The Python that an image has, which decides what wheels go into it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from e2e.errors import HarnessError
from e2e.image.engine import docker

OLDEST_PYTHON = (3, 11)
OLDEST_GLIBC_MINOR = 5
"""manylinux_2_5 is manylinux1, the first of those tags."""

_LEGACY_TAGS = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""What PEP 600 calls the tags that older wheels carry, by glibc's minor version."""

PROBE = """
import json, platform, sys
print(json.dumps([list(sys.version_info[:2]), platform.machine(), *platform.libc_ver(),
                  sys.implementation.name]))
"""


class UnusableBase(HarnessError):
    """The base image's Python cannot run Poolwise."""


@dataclass(frozen=True)
class Target:
    """An interpreter of CPython on Linux with glibc."""

    python: tuple[int, int]
    machine: str
    glibc: tuple[int, int]

    def __str__(self) -> str:
        python, glibc = (".".join(map(str, version)) for version in (self.python, self.glibc))
        return f"CPython {python} on {self.machine} with glibc {glibc}"

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platform tags that it can install, best first."""
        tags: list[str] = []
        for minor in range(self.glibc[1], OLDEST_GLIBC_MINOR - 1, -1):
            tags.append(f"manylinux_2_{minor}_{self.machine}")
            if legacy := _LEGACY_TAGS.get(minor):
                tags.append(f"{legacy}_{self.machine}")
        return (*tags, f"linux_{self.machine}")

    @property
    def pip_arguments(self) -> Sequence[str]:
        """What tells ``pip download`` to choose wheels for it and not for pip's own interpreter."""
        major, minor = self.python
        arguments = [
            "--only-binary=:all:",
            "--implementation=cp",
            f"--python-version={major}.{minor}",
        ]
        arguments += [f"--abi={abi}" for abi in (f"cp{major}{minor}", "abi3", "none")]
        return [*arguments, *(f"--platform={tag}" for tag in self.platforms)]


def probe(base: str, platform: str | None = None) -> Target:
    """Ask the Python of an image what it is."""
    options = ["--platform", platform] if platform else []
    printed = docker("run", "--rm", "--network=none", *options, base, "python3", "-IBc", PROBE)
    return parse(base, printed)


def parse(base: str, printed: str) -> Target:
    """Read what :data:`PROBE` printed; raises :class:`UnusableBase` for what cannot be used."""
    (major, minor), machine, libc, libc_version, implementation = json.loads(printed)
    if implementation != "cpython":
        raise UnusableBase(f"base {base}: its Python is {implementation}; needed is CPython")
    if (major, minor) < OLDEST_PYTHON:
        raise UnusableBase(f"base {base}: its Python is {major}.{minor}; needed is 3.11 or newer")
    if libc != "glibc":
        raise UnusableBase(f"base {base}: its C library is not glibc; the wheels need glibc")
    glibc_major, glibc_minor = map(int, libc_version.split(".")[:2])
    return Target((major, minor), machine, (glibc_major, glibc_minor))


def host() -> Target:
    """The interpreter that runs this, for tests and for trying a base that is alike."""
    command = [sys.executable, "-IBc", PROBE]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parse("this machine", printed)
