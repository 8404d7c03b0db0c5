from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from e2e.tools import build, cache
from e2e.tools.catalog import ETCD, KUBECTL, KUBERNETES, KWOK, TOOLS, Module, Tool


@pytest.mark.parametrize("module", [ETCD, KUBERNETES, KWOK], ids=lambda module: module.folder)
def test_versions_are_read_from_go_mod(module: Module) -> None:
    assert f"{module.pinned} {module.version}" in (module.path / "go.mod").read_text()


def test_every_tool_is_named_by_its_module() -> None:
    for tool in TOOLS:
        assert tool.package in (tool.module.path / "go.mod").read_text()


@pytest.mark.parametrize(
    ("printed", "fits"),
    [
        pytest.param("Client Version: v1.36.3\nKustomize Version: v5.8.1", True, id="same"),
        pytest.param("Kubernetes v1.36.0", True, id="other patch"),
        pytest.param("Kubernetes v1.35.9", False, id="other minor"),
        pytest.param("v1.36", True, id="no patch"),
        pytest.param("Kubernetes v1.360.1", False, id="longer minor"),
        pytest.param("", False, id="silent"),
    ],
)
def test_a_binary_of_the_same_minor_version_fits(printed: str, fits: bool) -> None:
    assert KUBECTL.fits(printed) is fits


def test_the_key_of_a_build_changes_with_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(KWOK.path, tmp_path / "kwok")
    before = KWOK.key
    monkeypatch.setattr("e2e.tools.catalog.MODULES", tmp_path)
    assert KWOK.key == before
    with (tmp_path / "kwok" / "go.sum").open("a") as sums:
        sums.write("one more line\n")
    assert KWOK.key != before


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"POOLWISE_CACHE": "/a"}, "/a", id="own"),
        pytest.param({"XDG_CACHE_HOME": "/b"}, "/b/poolwise", id="xdg"),
        pytest.param({"HOME": "/c"}, "/c/.cache/poolwise", id="home"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POOLWISE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.root() == Path(expected)


def _install(folder: Path, tool: Tool, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / tool.name
    path.write_text(f"#!/bin/sh\necho Version: {version}\n")
    path.chmod(0o755)
    return path


def test_assets_come_before_the_cache_and_the_cache_before_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOLWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    on_path = _install(tmp_path / "path", KUBECTL, KUBECTL.module.version)
    assert build.find(KUBECTL) == on_path

    built = build.built_path(KUBECTL)
    built.parent.mkdir(parents=True)
    built.touch()
    assert build.find(KUBECTL) == built

    asset = _install(tmp_path / "assets", KUBECTL, KUBECTL.module.version)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(asset.parent))
    assert build.find(KUBECTL) == asset


def test_a_binary_of_another_version_is_passed_over_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POOLWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    old = _install(tmp_path / "assets", KUBECTL, "v1.20.0")
    _install(tmp_path / "path", KUBECTL, "v1.21.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(old.parent))
    assert build.find(KUBECTL) is None
    said = capsys.readouterr().err
    assert f"not using {old}: it is Version: v1.20.0; needed is {KUBERNETES.minor}" in said
