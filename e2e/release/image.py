"""The image that a release publishes, by digest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from e2e.release.errors import NotReleasable

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
