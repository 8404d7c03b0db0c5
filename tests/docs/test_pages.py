"""What the pages say is so: commands print what is shown, manifests hold, nothing is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from e2e.docs.blocks import Command, manifests, steps
from e2e.docs.pages import ELSEWHERE, NOWHERE, is_offline, is_on_kind, offline_steps, pages, parts
from e2e.docs.playing import REPOSITORY, clone, play
from poolwise.api.validation import problems
from poolwise.cli.app import app

OURS = "apiVersion: poolwise.dev/"


def named(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


OFFLINE_PAGES = [
    page
    for page in pages()
    if not is_on_kind(page) and any(isinstance(each, Command) for each in offline_steps(page))
]
MANIFESTS = [
    pytest.param(text, id=f"{block}-{number}")
    for page in pages()
    for number, (block, text) in enumerate(manifests(page))
    if any(line.startswith(OURS) for line in text.splitlines())
]


@pytest.mark.parametrize("page", OFFLINE_PAGES, ids=named)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    play(offline_steps(page), clone(tmp_path))


@pytest.mark.parametrize("text", MANIFESTS)
def test_manifests_are_what_the_api_server_accepts(text: str) -> None:
    documents = [each for each in yaml.safe_load_all(text) if each]
    assert documents
    for document in documents:
        assert problems(document) == [], document["metadata"]["name"]


@pytest.mark.parametrize("text", MANIFESTS)
def test_manifests_can_be_planned(text: str, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(text)
    nodes = REPOSITORY / "examples" / "nodes" / "demo.yaml"
    words = ["plan", "-f", str(given), "--nodes", str(nodes), "-o", "json"]
    planned = CliRunner().invoke(app, words)
    assert planned.exit_code == 0, planned.output
    report = json.loads(planned.stdout)
    told = {each["name"] for each in (*report["workloads"], *report["pools"])}
    assert {each["metadata"]["name"] for each in yaml.safe_load_all(text)} <= told


def left_over() -> Iterator[tuple[Command, str]]:
    """Commands that are not run where they stand, neither here nor on kind."""
    for page in pages():
        for step in steps(page):
            if isinstance(step, Command) and not is_on_kind(page):
                yield from ((step, part) for part in parts(step) if not is_offline(part))


def test_every_command_is_run_somewhere() -> None:
    known = (*ELSEWHERE, *NOWHERE)
    unknown = [f"{step.block}: {part}" for step, part in left_over() if not part.startswith(known)]
    assert unknown == []


def test_what_is_said_of_a_command_is_needed() -> None:
    parts_left = [part for _, part in left_over()]
    for beginning in (*ELSEWHERE, *NOWHERE):
        assert any(part.startswith(beginning) for part in parts_left), beginning


def test_what_runs_a_command_is_there() -> None:
    for beginning, path in ELSEWHERE.items():
        assert (REPOSITORY / path).exists(), beginning
