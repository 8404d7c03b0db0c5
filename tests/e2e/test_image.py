"""The operator's image as it is built, where a container engine answers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import poolwise
from e2e.controlplane.cluster import ControlPlane
from e2e.demo.stage import apply_examples, prepare, wait_until_told
from e2e.image import build, checks, container, source, wheels
from e2e.image.container import OperatorContainer
from e2e.image.contents import Entry, added, differences, entries
from e2e.image.engine import EngineFailed, docker, image_exists, why_unavailable
from e2e.image.source import Source
from e2e.image.target import probe
from e2e.tools.cache import locked

pytestmark = pytest.mark.docker

TAG = "poolwise-test:image"


@dataclass(frozen=True)
class Built:
    """An image, its base, and what they hold."""

    tag: str
    base: str
    about: Source
    contents: list[Entry]
    base_contents: list[Entry]


@pytest.fixture(scope="module")
def image() -> Iterator[Built]:
    """The image, built from this checkout on ``$BASE`` or the Dockerfile's own base."""
    base = os.environ.get("BASE") or build.default_base()
    if reason := why_unavailable():
        pytest.skip(f"no container engine: {reason}")
    if not image_exists(base):
        try:
            docker("pull", "--quiet", base)
        except EngineFailed as error:
            pytest.skip(f"no base image, set BASE to one that the engine has: {error}")
    about = source.read()
    build.image(base, TAG, about)
    yield Built(TAG, base, about, entries(TAG), entries(base))
    docker("rmi", "--force", TAG)


@pytest.mark.parametrize("check", checks.CONTENT_CHECKS, ids=lambda check: check.__name__)
def test_contents(image: Built, check) -> None:
    assert check(image.contents) == []


def test_settings(image: Built) -> None:
    assert checks.wrong_settings(checks.configuration(image.tag)) == []


def test_adds_little_to_its_base(image: Built) -> None:
    assert checks.above_base_bytes(image.tag, image.base) <= checks.LIMIT_ABOVE_BASE_BYTES


def test_gives_nobody_more_rights(image: Built) -> None:
    assert checks.gained_rights(image.contents, image.base_contents) == []


def test_adds_files_only_where_expected(image: Built) -> None:
    """Beside our own folder: accounts, and what the removal of pip changes in dpkg's records."""
    expected = re.compile(r"^(opt$|opt/poolwise|etc/(passwd|group)$|var/lib/dpkg/)")
    surprising = [each.path for each in added(image.contents, image.base_contents)]
    assert [path for path in surprising if not expected.match(path)] == []


def test_two_builds_are_equal(image: Built) -> None:
    """Of the same wheels; that Poolwise's own wheel is the same twice is tested beside."""
    tags = [f"{TAG}-first", f"{TAG}-second"]
    with locked(wheels.BUILD, "building the image twice"):
        wheels.gather(probe(image.base), image.about)
        for tag, options in zip(tags, ([], ["--no-cache"]), strict=True):
            build.assemble(image.base, tag, image.about, options)
    first, second = map(entries, tags)
    docker("rmi", "--force", *tags)
    assert differences(first, second) == []


def test_has_the_locked_packages_and_no_other(image: Built) -> None:
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps([f'{d.name}=={d.version}' for d in m.distributions()]))"
    )
    names = json.loads(container.python(image.tag, code))
    installed = sorted(name.lower().replace("_", "-") for name in names)
    lock = (source.ROOT / "requirements" / "runtime.txt").read_text()
    locked = re.findall(r"^([\w-]+==\S+)(?! ; sys_platform == 'win32') \\$", lock, re.MULTILINE)
    assert installed == sorted([*locked, f"poolwise=={poolwise.__version__}"])


def test_every_module_of_ours_and_of_kopf_can_be_imported(image: Built) -> None:
    """What was left out of the image is nothing that they name."""
    code = """
import importlib, pkgutil, kopf, poolwise
for package in (poolwise, kopf):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print("all")
"""
    assert container.python(image.tag, code) == "all\n"


def test_command_and_entry_point_are_the_same(image: Built) -> None:
    by_entry_point = container.run(image.tag, "--version")
    by_command = container.run(image.tag, "--version", entrypoint="poolwise")
    assert by_entry_point == by_command == f"{poolwise.__version__}\n"


def test_environment_and_working_directory_add_no_code(image: Built) -> None:
    code = "import sys; print(sys.flags.isolated, sys.flags.dont_write_bytecode)"
    assert container.python(image.tag, code) == "1 1\n"
    options = ("--rm", "--network=none", "--env=PYTHONPATH=/tmp", "--env=PYTHONSTARTUP=/tmp/x")
    assert docker("run", *options, image.tag, "--version") == f"{poolwise.__version__}\n"
    entry_point = checks.configuration(image.tag)["Entrypoint"]
    assert entry_point == ["/opt/poolwise/bin/python3", "-IB", "-m", "poolwise"]


def test_runs_as_any_user(image: Built) -> None:
    """OpenShift chooses a user of its own, without a name."""
    options = ("--rm", "--network=none", "--user=1000680000:0", *container.RESTRICTED)
    assert docker("run", *options, image.tag, "--version") == f"{poolwise.__version__}\n"


@pytest.mark.apiserver
def test_operates_a_cluster_and_ends_when_told(image: Built) -> None:
    """All of the examples are placed by the image: with what was left out, it lacks nothing."""
    with ControlPlane.prepare("image") as control_plane:
        prepare(control_plane)
        with OperatorContainer(image.tag, control_plane.kubeconfig) as operator:
            apply_examples(control_plane)
            assert wait_until_told(control_plane), operator.logs()
            assert operator.stop() == 0, operator.logs()
