"""Build the operator's image: wheels first, then the Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Sequence

from e2e.image import wheels
from e2e.image.engine import EngineFailed, image_exists, size_bytes, why_unavailable
from e2e.image.source import ROOT, Source
from e2e.image.target import probe
from e2e.progress import Command, say
from e2e.tools.cache import locked

DOCKERFILE = ROOT / "Dockerfile"
MEGABYTE = 1_000_000


def default_base() -> str:
    """The base that the Dockerfile names."""
    found = re.search(r"^ARG BASE=(\S+)", DOCKERFILE.read_text(), re.MULTILINE)
    assert found is not None, "the Dockerfile names its base"
    return found[1]


def image(base: str, tag: str, about: Source, platform: str | None = None) -> None:
    """Gather the wheels for ``base``, and build ``tag`` on it.

    Raises :class:`BuildFailed` with the last lines of what failed, :class:`EngineFailed` or
    :class:`UnusableBase`.
    """
    if reason := why_unavailable():
        raise EngineFailed(f"no container engine: {reason}")
    with locked(wheels.BUILD, "building the image"):
        wheels.gather(probe(base, platform), about)
        assemble(base, tag, about, [f"--platform={platform}"] if platform else [])
    _tell_size(base, tag)


def assemble(base: str, tag: str, about: Source, options: Sequence[str] = ()) -> None:
    """Run the Dockerfile on the wheels that are there; raises :class:`BuildFailed`."""
    arguments = ["docker", "build", *options, "--build-arg", f"BASE={base}"]
    arguments += [*about.build_arguments, "--tag", tag, "."]
    say(f"==> image {tag} on {base}")
    Command(f"building {tag}", arguments, ROOT, wheels.BUILD / "image.log", {}).run()


def _tell_size(base: str, tag: str) -> None:
    total = size_bytes(tag) / MEGABYTE
    if image_exists(base):
        say(f"    {tag}: {total:.0f} MB, of which its base has {size_bytes(base) / MEGABYTE:.0f}")
    else:
        say(f"    {tag}: {total:.0f} MB")
