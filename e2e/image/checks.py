"""What must be true of the operator's image; each function returns what is wrong, or nothing.

The suite on kind may ask the same of the image that it installs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from e2e.image.contents import INSTALLED, Entry
from e2e.image.engine import docker, size_bytes

LIMIT_ABOVE_BASE_BYTES = 200_000_000
USER = "65532:65532"

_TOOLS = re.compile(
    r"(^|/)(pip|easy_install|wheel|gcc|g\+\+|cc|c\+\+|clang|tcc|as|ld|make)[\d.]*$|-linux-gnu-(gcc|ld)"
)
_INSTALLERS = re.compile(r"/(pip|setuptools|wheel|pkg_resources|ensurepip|_distutils_hack)/")
_TESTS = re.compile(r"(/tests?/|/testing/|_test\.py$|/conftest\.py$)")
_PLOTTING = re.compile(r"/site-packages/(matplotlib|plotly|seaborn|numpy|scipy|pandas)/")
_REQUIRED_LABELS = ("title", "description", "licenses", "version", "revision")


def build_tools(entries: Sequence[Entry]) -> list[str]:
    """Compilers, and what installs Python packages."""
    return [
        entry.path
        for entry in entries
        if entry.kind != "folder"
        and (("bin/" in entry.path and _TOOLS.search(entry.path)) or _INSTALLERS.search(entry.path))
    ]


def not_needed(entries: Sequence[Entry]) -> list[str]:
    """Tests and plotting among what we installed."""
    ours = [entry.path for entry in entries if entry.path.startswith(INSTALLED)]
    return [path for path in ours if _TESTS.search(path) or _PLOTTING.search(path)]


def writable(entries: Sequence[Entry]) -> list[str]:
    """What another user than root could change: of ours, and where accounts are kept."""
    guarded = [
        entry
        for entry in entries
        if entry.path.startswith(INSTALLED) or entry.path in ("etc/passwd", "etc/group")
    ]
    return [
        entry.path
        for entry in guarded
        if entry.kind != "link" and (entry.mode & 0o022 or entry.owner != (0, 0))
    ]


def not_compiled(entries: Sequence[Entry]) -> list[str]:
    """Modules without a compiled file: each would be compiled anew at every start."""
    compiled = {entry.path for entry in entries if entry.path.endswith(".pyc")}
    modules = {
        re.sub(r"__pycache__/([^/]+)\.cpython-\d+\.pyc$", r"\1.py", path) for path in compiled
    }
    return [
        entry.path
        for entry in entries
        if entry.path.startswith(INSTALLED)
        and entry.path.endswith(".py")
        and entry.path not in modules
    ]


def gained_rights(entries: Sequence[Entry], base: Sequence[Entry]) -> list[str]:
    """Programs that give another user's rights and that the base has not."""
    known = {entry.path for entry in base if entry.changes_user}
    return [entry.path for entry in entries if entry.changes_user and entry.path not in known]


def configuration(tag: str) -> Mapping[str, object]:
    """The image's own settings: user, entry point, labels."""
    printed = docker("image", "inspect", "--format", "{{json .Config}}", tag)
    return dict(json.loads(printed))


def wrong_settings(settings: Mapping[str, object]) -> list[str]:
    """Of user, entry point and labels."""
    labels = settings.get("Labels")
    labels = labels if isinstance(labels, Mapping) else {}
    wrong = [
        f"label {name} is missing"
        for name in _REQUIRED_LABELS
        if labels.get(f"org.opencontainers.image.{name}") in (None, "", "unknown")
    ]
    if settings.get("User") != USER:
        wrong.append(f"user {settings.get('User')}: not {USER}")
    if settings.get("ExposedPorts") or settings.get("Volumes"):
        wrong.append("ports or volumes are declared; the chart says which there are")
    return wrong


def above_base_bytes(tag: str, base: str) -> int:
    """What the image adds to its base."""
    return size_bytes(tag) - size_bytes(base)


CONTENT_CHECKS: Sequence[Callable[[Sequence[Entry]], list[str]]] = (
    build_tools,
    not_needed,
    writable,
    not_compiled,
)
"""Checks that need only the listing of the image."""
