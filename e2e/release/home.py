"""Where the project lives, as its files say: a release from elsewhere would point to another's."""

from __future__ import annotations

from pathlib import Path

import yaml

from e2e.release.errors import NotReleasable
from e2e.release.versions import ROOT

VALUES = "charts/poolwise/values.yaml"
INSIGHTS = "SECURITY-INSIGHTS.yml"


def check(repository: str, root: Path = ROOT) -> None:
    """Whether the files name the GitHub repository ``owner/name``, and the image that it pushes.

    Raises :class:`NotReleasable` with a line for each file that does not.
    """
    image = f"ghcr.io/{repository.lower()}"
    page = f"https://github.com/{repository}"
    wanted = {
        f"{VALUES} image.repository": (_read(root, VALUES)["image"]["repository"], image),
        f"{INSIGHTS} repository.url": (_read(root, INSIGHTS)["repository"]["url"], page),
    }
    lines = [
        f"{where}: is {told!r}, a release of {repository} needs {needed!r}"
        for where, (told, needed) in wanted.items()
        if told != needed
    ]
    if lines:
        raise NotReleasable("\n".join(lines))


def _read(root: Path, path: str) -> dict[str, dict[str, str]]:
    return dict(yaml.safe_load((root / path).read_text("utf-8")))
