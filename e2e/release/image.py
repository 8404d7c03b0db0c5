"""The image that a release publishes, and whether the chart names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from e2e.release.errors import NotReleasable
from e2e.release.versions import ROOT

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Image:
    """An image by its digest, which no later push can change."""

    repository: str
    digest: str

    @classmethod
    def parse(cls, reference: str) -> Image:
        """``ghcr.io/you/poolwise@sha256:...``."""
        repository, _, digest = reference.partition("@")
        if not repository or not DIGEST.fullmatch(digest):
            raise NotReleasable(f"image {reference}: is not REPOSITORY@sha256: and 64 digits")
        return cls(repository, digest)


def check_default(repository: str) -> None:
    """Refuse a release whose chart would pull another image than the one that is pushed."""
    values = yaml.safe_load((ROOT / "charts/poolwise/values.yaml").read_text("utf-8"))
    default = values["image"]["repository"]
    if default != repository:
        raise NotReleasable(
            f"charts/poolwise/values.yaml image.repository: is {default!r}, "
            f"the release pushes {repository}"
        )
