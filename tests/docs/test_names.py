"""Names on the pages stand in the sources: settings, metrics, fields, reasons, flags.

A page outlives what it describes: a field that is renamed leaves its old name behind there, and no
link breaks. Whatever looks like a name of ours is therefore looked for.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.docs.pages import pages
from e2e.docs.playing import REPOSITORY
from poolwise.environment import PREFIX
from poolwise.settings import Settings

SOURCES = ("*.py", "*.yaml", "*.toml", "*.tpl", "*.txt", "*.sh", "*.schema.json", "Makefile", ".ci")
FOREIGN = {
    "EndpointPickerConfig": "Gateway API Inference Extension",
    "ImageVolume": "Kubernetes",
    "IsDisruptable": "Karpenter",
    "SchedulingDisabled": "kubectl get nodes",
    "WaitingForQuota": "Kueue",
    "apiserver_flowcontrol_rejected_requests_total": "Kubernetes",
    "disable_log_stats": "vLLM",
}
"""Names of others that no source of ours has a use for."""
TICKED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+)+|[A-Za-z][a-z]+(?:[A-Z][A-Za-z]*)+")
PATH = re.compile(r"(?<![\w./-])(?:spec|status)(?:\.[a-zA-Z]+)+")
PROGRAM = re.compile(r"python3? -m ((?:bench|e2e)[\w.]*)([^`\n]*)")

by_page = pytest.mark.parametrize(
    "page",
    [*pages(), REPOSITORY / "CHANGELOG.md"],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)


@cache
def words() -> frozenset[str]:
    """All that the sources call anything; in strings, names end where their placeholders begin."""
    listed = subprocess.run(
        ["git", "ls-files", *SOURCES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    texts = (
        path.read_text(encoding="utf-8")
        for name in listed.stdout.split()
        if (path := REPOSITORY / name) != Path(__file__) and not name.startswith("bench/folds")
    )
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z_]\w+", text))


@cache
def metrics() -> frozenset[str]:
    """Names of our own, with the prefix that the table leaves out."""
    text = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\| `(poolwise_\w+)` \|", text, re.MULTILINE))


def names(page: Path) -> Iterator[str]:
    """In backticks, with an underscore or a capital inside; of a dotted one each part."""
    for ticked in TICKED.findall(page.read_text(encoding="utf-8")):
        yield from (each for each in ticked.split(".") if NAME.fullmatch(each))


@by_page
def test_names_stand_in_the_sources(page: Path) -> None:
    known = words() | metrics() | FOREIGN.keys()
    assert sorted({each for each in names(page) if each not in known}) == []


def test_foreign_names_are_named() -> None:
    named = {each for page in pages() for each in names(page)}
    assert FOREIGN.keys() <= named
    assert not FOREIGN.keys() & words()


@by_page
def test_variables_of_the_environment_are_read(page: Path) -> None:
    """Settings, and what the sources spell out."""
    settings = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", page.read_text(encoding="utf-8")))
    assert sorted(named - settings - words()) == []


@cache
def schemas() -> tuple[Mapping[str, Any], ...]:
    documents = (yaml.safe_load(path.read_text()) for path in (REPOSITORY / "crds").glob("*.yaml"))
    return tuple(
        document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for document in documents
    )


def leads(schema: Mapping[str, Any], path: list[str]) -> bool:
    """Whether a field is there; where a schema is open, whether the sources write such a one."""
    if not path:
        return True
    inner = schema.get("items", schema)
    known = inner.get("properties", {})
    if path[0] in known:
        return leads(known[path[0]], path[1:])
    is_open = "x-kubernetes-preserve-unknown-fields" in inner or not known
    return is_open and all(each in words() for each in path)


@by_page
def test_fields_are_those_of_a_resource(page: Path) -> None:
    ticked = TICKED.findall(page.read_text(encoding="utf-8"))
    paths = {path for each in ticked for path in PATH.findall(each)}
    lost = {
        path for path in paths if not any(leads(schema, path.split(".")) for schema in schemas())
    }
    assert sorted(lost - {"spec.active", "status.podIP"}) == []  # of Kueue's Workload, of a Pod


@cache
def package(top: str) -> str:
    return "".join(each.read_text(encoding="utf-8") for each in (REPOSITORY / top).rglob("*.py"))


@by_page
def test_flags_are_those_of_the_programs(page: Path) -> None:
    """Of those that no test of the pages runs, since they take minutes or tables."""
    for module, rest in PROGRAM.findall(page.read_text(encoding="utf-8")):
        told = package(module.partition(".")[0])
        for flag in re.findall(r"--([a-z][a-z-]+)", rest):
            is_known = f'"--{flag}"' in told or f"{flag.replace('-', '_')}:" in told
            assert is_known, f"{module} --{flag}"


@by_page
def test_kubectl_is_given_no_command_of_ours(page: Path) -> None:
    """That would take a plugin named ``kubectl-poolwise``, and none is installed."""
    assert "kubectl poolwise" not in page.read_text(encoding="utf-8")
