"""What an image's file system holds, as a container that starts from it would see it."""

from __future__ import annotations

import hashlib
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from e2e.image.engine import EngineFailed, docker

INSTALLED = "opt/poolwise"
"""Where everything lies that the image has beside its base."""


@dataclass(frozen=True)
class Entry:
    """One file, folder or link. ``content`` is a hash of the bytes, or where a link points."""

    path: str
    kind: str
    mode: int
    owner: tuple[int, int]
    content: str
    modified_seconds: int | None

    @property
    def changes_user(self) -> bool:
        """Whether running it gives another user's or group's rights."""
        return self.kind == "file" and bool(self.mode & (stat.S_ISUID | stat.S_ISGID))


def entries(tag: str) -> list[Entry]:
    """Everything in the image, ordered by path."""
    with _exported(tag) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        return sorted(read(archive), key=lambda entry: entry.path)


@contextmanager
def _exported(tag: str) -> Iterator[IO[bytes]]:
    container = docker("create", "--network=none", tag, "true").strip()
    export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
    assert export.stdout is not None
    try:
        with export.stdout:
            yield export.stdout
            export.stdout.read()  # what follows the archive's end mark
        if export.wait():
            raise EngineFailed(f"docker export of {tag}: exit status {export.returncode}")
    finally:
        export.kill()
        export.wait()
        docker("rm", container)


def read(archive: tarfile.TarFile) -> Iterator[Entry]:
    """The entries of an exported file system, in the order of the archive."""
    for member in archive:
        path = member.name.removeprefix("./")
        ours = path == INSTALLED or path.startswith(f"{INSTALLED}/")
        yield Entry(
            path=path,
            kind=_kind(member),
            mode=stat.S_IMODE(member.mode),
            owner=(member.uid, member.gid),
            content=_content(archive, member),
            # The engine itself gives /etc/hosts and the like the time at which it exports.
            modified_seconds=int(member.mtime) if ours else None,
        )


def _kind(member: tarfile.TarInfo) -> str:
    if member.isreg():
        return "file"
    if member.isdir():
        return "folder"
    return "link" if member.issym() or member.islnk() else "other"


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    if not member.isreg():
        return member.linkname
    data = archive.extractfile(member)
    assert data is not None
    return hashlib.sha256(data.read()).hexdigest()


def differences(first: Iterable[Entry], second: Iterable[Entry]) -> list[str]:
    """Paths that only one of them has, or that differ in content, mode, owner or time."""
    return sorted({entry.path for entry in set(first) ^ set(second)})


def added(image: Iterable[Entry], base: Iterable[Entry]) -> list[Entry]:
    """What the image has and its base has not, or has otherwise."""
    known = set(base)
    return [entry for entry in image if entry not in known]
