"""The charts' archives, packaged and pushed by the pinned helm."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from e2e.release import charts
from e2e.release.__main__ import main
from e2e.release.errors import NotReleasable
from poolwise import __version__
from tests.release import registry

NAMES = [f"poolwise-{__version__}.tgz", f"poolwise-crds-{__version__}.tgz"]
pytestmark = pytest.mark.tools("helm")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    charts.package(folder)
    return folder


def test_every_chart_is_packaged_under_the_version(output: Path) -> None:
    assert sorted(path.name for path in output.iterdir()) == sorted(NAMES)
    with tarfile.open(output / NAMES[0]) as archive:
        names = archive.getnames()
    assert "poolwise/templates/deployment.yaml" in names
    assert "poolwise/files/rights.yaml" in names


def test_a_push_tells_where_each_chart_lies(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is signed is what it tells, so it has to be the digest of what the registry got."""
    with registry.running() as server:
        where = f"{server.address}/you/poolwise/charts"
        main(["push", where, "--plain-http", f"--output={output}"])
        told = capsys.readouterr().out.split()
        tagged = {name: each for name, each in server.manifests.items() if "@" not in name}
    assert sorted(told) == sorted(
        f"{server.address}/{name.rpartition(':')[0]}@{each.digest}" for name, each in tagged.items()
    )
    assert [name.rpartition(":")[2] for name in tagged] == [__version__] * 2
    manifest = json.loads(tagged[f"you/poolwise/charts/poolwise:{__version__}"].content)
    archive = server.blobs[manifest["layers"][0]["digest"]].content
    assert archive == (output / NAMES[0]).read_bytes()


def test_a_push_that_fails_says_why(output: Path) -> None:
    with registry.running() as server:
        gone = server.address
    with pytest.raises(NotReleasable, match=r"^helm push .*connection refused"):
        charts.push(output, f"{gone}/charts", plain_http=True)


def test_a_push_without_charts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReleasable, match="has no charts"):
        charts.push(tmp_path, "127.0.0.1:1/charts")
