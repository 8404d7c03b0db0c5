"""The workflows: least rights, pinned, bounded, and nothing in them that a developer cannot run."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.image.build import default_base
from e2e.tools.catalog import KIND_MODULE, KUBERNETES, MODULES

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted(GITHUB.glob("actions/*/action.yml"))
EVERYWHERE = [*WORKFLOWS, *ACTIONS]
RELEASE = GITHUB / "workflows" / "release.yml"
TESTED = ("check", "test", "chart", "e2e")
MOST_MINUTES = 75
PINNED = re.compile(r"uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)")
NODE_IMAGE = re.compile(r"kindest/node:v(\d+\.\d+)\.\d+@sha256:[0-9a-f]{64}")
WRITES = {
    "security.yml": {"security-events"},
    "scorecard.yml": {"security-events", "id-token"},
    "release.yml": {"packages", "id-token", "attestations", "contents"},
}
"""What the jobs of a workflow may write at most; of all others, nothing."""

Job = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    document = dict(yaml.safe_load(path.read_text("utf-8")))
    document["on"] = document.pop(True, None)  # YAML 1.1 reads the key `on` as a boolean
    return document


def jobs(*paths: Path) -> Iterator[tuple[str, Job]]:
    for path in paths:
        for name, job in read(path)["jobs"].items():
            yield f"{path.name} {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for where, job in jobs(*WORKFLOWS):
        yield from ((where, step) for step in job.get("steps", ()))
    for path in ACTIONS:
        yield from ((str(path.relative_to(GITHUB)), step) for step in read(path)["runs"]["steps"])


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.parent.name + path.stem)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name(command[0])
    return subprocess.run(
        [str(tool), *command[1:]], capture_output=True, text=True, check=False, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-actions", ACTIONS),
        ("dependabot", [GITHUB / "dependabot.yml"]),
    ],
)
def test_they_are_of_their_schema(schema: str, paths: list[Path]) -> None:
    told = run("check-jsonschema", f"--builtin-schema=vendor.{schema}", *map(str, paths))
    assert told.returncode == 0, told.stdout


def test_the_audit_finds_nothing() -> None:
    """zizmor: injection into scripts, leaked credentials, poisoned caches, rights too wide."""
    told = run("zizmor", "--offline", "--no-progress", "--strict-collection", str(GITHUB))
    assert told.returncode == 0, told.stdout


@each(WORKFLOWS)
def test_a_workflow_has_no_rights_of_its_own(path: Path) -> None:
    assert read(path)["permissions"] == {}


def test_each_job_says_what_it_may() -> None:
    for where, job in jobs(*WORKFLOWS):
        assert isinstance(job.get("permissions"), dict), where
        writes = {right for right, level in job["permissions"].items() if level == "write"}
        assert writes <= WRITES.get(where.split()[0], set()), where


@each(WORKFLOWS)
def test_the_table_of_rights_has_no_more_than_is_used(path: Path) -> None:
    used = {
        right
        for _, job in jobs(path)
        for right, level in job["permissions"].items()
        if level == "write"
    }
    assert used == WRITES.get(path.name, set())


@each(EVERYWHERE)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    lines = [line.strip(" -") for line in path.read_text("utf-8").splitlines()]
    used = [line for line in lines if line.startswith("uses:")]
    assert used
    assert [each for each in used if not PINNED.fullmatch(each) and " ./" not in each] == []


def test_an_action_has_one_version() -> None:
    text = "".join(path.read_text("utf-8") for path in EVERYWHERE)
    pins = {(name, commit, version) for name, commit, version in PINNED.findall(text)}
    repositories = {"/".join(name.split("/")[:2]) for name, _, _ in pins}
    assert len({commit for _, commit, _ in pins}) == len(repositories)


def test_local_actions_and_workflows_exist() -> None:
    used = {step["uses"] for _, step in steps() if step.get("uses", "").startswith("./")}
    used |= {job["uses"] for _, job in jobs(*WORKFLOWS) if "uses" in job}
    assert {path.parent.name for path in ACTIONS} == {Path(u).name for u in used if "actions/" in u}
    assert [path for path in used if not (ROOT / path).exists()] == []


def test_every_job_ends() -> None:
    """A job that calls a workflow has none: GitHub takes the limits of that workflow's jobs."""
    for where, job in jobs(*WORKFLOWS):
        if "uses" not in job:
            assert 0 < job["timeout-minutes"] <= MOST_MINUTES, where


@each(WORKFLOWS)
def test_a_newer_commit_does_not_queue_behind_an_older(path: Path) -> None:
    """By name, not ``github.workflow``: a called workflow would share its caller's group."""
    group = read(path)["concurrency"]
    assert group["group"] == f"{path.stem}-${{{{ github.ref }}}}"
    if path in (RELEASE, GITHUB / "workflows" / "scorecard.yml"):
        assert group["cancel-in-progress"] is False


def test_checkouts_leave_no_credentials() -> None:
    checkouts = [step for _, step in steps() if "actions/checkout@" in step.get("uses", "")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_secret_is_asked_for() -> None:
    """The token of the run is enough: no password is stored, so none can leak."""
    for path in EVERYWHERE:
        assert not re.search(r"\bsecrets\b", path.read_text("utf-8")), path.name


def scripts() -> str:
    return "\n".join(str(step.get("run", "")) for _, step in steps())


def test_they_call_the_targets_that_developers_call() -> None:
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    called = set(re.findall(r"\bmake ([a-z0-9-]+)", scripts()))
    assert called <= targets
    assert called == {"setup", "check", "test", "check-chart", "e2e"}


def test_the_modules_that_they_run_exist() -> None:
    named = set(re.findall(r"python -m (\S+)", scripts()))
    assert named == {"e2e.release", "e2e.image"}
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def test_what_has_a_script_of_its_own_is_setup_or_release() -> None:
    """Everywhere else a job is one make target."""
    for where, job in jobs(*WORKFLOWS):
        if not where.startswith("release.yml"):
            told = [step["run"] for step in job.get("steps", ()) if "run" in step]
            assert all(re.fullmatch(r"make [a-z0-9-]+", line) for line in told), where
            assert len(told) <= 1, where


def matrix(workflow: str) -> dict[str, Any]:
    """Of the one job that has any."""
    [job] = [job for _, job in jobs(GITHUB / "workflows" / workflow) if "strategy" in job]
    return dict(job["strategy"]["matrix"])


def minors() -> list[str]:
    return [entry["kubernetes"] for entry in matrix("e2e.yml")["include"]]


def test_python_is_tested_from_the_oldest_that_is_allowed() -> None:
    pythons = matrix("test.yml")["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    assert matrix("check.yml")["python"] == pythons == consecutive(pythons)
    assert f"python:{pythons[-1]}-slim" == default_base(), "what the image runs on is tested"


def consecutive(versions: list[str]) -> list[str]:
    """As many minor versions, one after the other, from the first."""
    major, first = map(int, versions[0].split("."))
    return [f"{major}.{first + count}" for count in range(len(versions))]


def test_kubernetes_is_tested_from_the_oldest_that_the_charts_allow() -> None:
    assert len(minors()) >= 3
    assert minors() == consecutive(minors())
    for chart in ROOT.glob("charts/*/Chart.yaml"):
        told = yaml.safe_load(chart.read_text("utf-8"))["kubeVersion"]
        assert told == f">={minors()[0]}.0-0", chart
    assert KUBERNETES.minor in minors()


def test_node_images_are_of_their_minor_and_pinned() -> None:
    for entry in matrix("e2e.yml")["include"]:
        found = NODE_IMAGE.fullmatch(entry["image"])
        assert found and found[1] == entry["kubernetes"], entry


def test_node_images_are_those_of_the_pinned_kind() -> None:
    """A new kind needs new images: look them up in its release notes, and change this line."""
    assert KIND_MODULE.version == "v0.33.0"
    assert minors()[-1] == "1.37"


COMPATIBILITY = ROOT / "docs" / "compatibility.md"


@pytest.mark.skipif(not COMPATIBILITY.exists(), reason="there is no docs/compatibility.md yet")
def test_the_compatibility_page_promises_what_is_tested() -> None:
    page = COMPATIBILITY.read_text("utf-8")
    rows = set(re.findall(r"^\| (1\.\d+) \| .*\bin CI\b", page, re.MULTILINE))
    assert rows == set(minors())
    assert f"{matrix('test.yml')['python'][0]} or newer" in page


def test_nothing_is_published_before_all_tests_of_its_tag() -> None:
    release = read(RELEASE)["jobs"]
    for name in TESTED:
        assert release[name]["uses"] == f"./.github/workflows/{name}.yml"
    writing = [name for name, job in release.items() if "write" in job["permissions"].values()]
    assert {"image", "index", "files", "publish"} == set(writing)
    assert all({*TESTED, "version"} <= needed(release, name) for name in writing)
    assert release["image"]["environment"] == "release"
    assert all("image" in needed(release, name) for name in writing if name != "image")


def needed(release: dict[str, Job], name: str) -> set[str]:
    """The jobs before that one, near and far."""
    near = release[name].get("needs", [])
    near = [near] if isinstance(near, str) else near
    return set(near).union(*(needed(release, each) for each in near))


def test_a_release_reads_no_cache() -> None:
    for where, job in jobs(RELEASE):
        for step in job.get("steps", ()):
            assert "actions/cache@" not in step.get("uses", ""), where
            assert step.get("uses") != "./.github/actions/setup", where
            assert "cache" not in step.get("with", {}), where


def test_a_release_finds_the_base_that_the_dockerfile_names() -> None:
    """By the same words, which the shell of the workflow and `make image` read."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    [named] = [line for line in lines if line.startswith("ARG BASE=")]
    assert named == f"ARG BASE={default_base()}"
    assert "sed -n 's/^ARG BASE=//p' Dockerfile" in RELEASE.read_text("utf-8")


def test_a_release_is_made_by_tags_alone() -> None:
    assert read(RELEASE)["on"] == {"push": {"tags": ["v*"]}}


def test_the_page_on_releases_tells_of_every_job() -> None:
    page = (ROOT / "docs" / "release.md").read_text("utf-8")
    assert [name for name in read(RELEASE)["jobs"] if f"`{name}`" not in page] == []


def test_every_module_of_the_tools_gets_updates() -> None:
    """Kubernetes apart: its `replace` lines move together, which dependabot cannot do."""
    updates = read(GITHUB / "dependabot.yml")["updates"]
    [gomod] = [each for each in updates if each["package-ecosystem"] == "gomod"]
    modules = {f"/e2e/tools/{path.parent.name}" for path in MODULES.glob("*/go.mod")}
    assert set(gomod["directories"]) == modules - {"/e2e/tools/kubernetes"}


def test_the_security_insights_point_to_files_that_exist() -> None:
    text = (ROOT / "SECURITY-INSIGHTS.yml").read_text("utf-8")
    told = yaml.safe_load(text)
    home = told["repository"]["url"]
    assert told["header"]["schema-version"] == "2.2.0"
    assert told["project"]["repositories"][0]["url"] == told["project"]["homepage"] == home
    pages = set(re.findall(rf"{re.escape(home)}/blob/main/(\S+)", text))
    assert len(pages) > 5
    assert sorted(page for page in pages if not (ROOT / page).exists()) == []
