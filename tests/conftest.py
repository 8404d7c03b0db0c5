"""Options of the whole suite, and what it has to have before its first test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from e2e.errors import BuildFailed
from e2e.tools.build import binaries
from e2e.tools.catalog import CHART_TOOLS, FAKE_KUBELET, KIND_TOOLS, KUBECTL, TOOLS, Tool

# What passes here passes on every machine, however slow; HYPOTHESIS_PROFILE=random draws anew.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

TESTS = Path(__file__).resolve().parent
SHARED_RELEASES = ("chart",)
"""Folders whose tests share one release in one cluster."""

KNOWN = {tool.name: tool for tool in (*TOOLS, *CHART_TOOLS, *KIND_TOOLS)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        default="local",
        metavar="local|context:NAME",
        help="the API server for the tests that need one: a control plane of this machine's own "
        "(the default), or the context of that name in your kubeconfig",
    )
    parser.addoption(
        "--again",
        type=int,
        default=0,
        metavar="TIMES",
        help="how often a test that needs an API server is run again where it fails: on a machine "
        "that is busy one of them is late now and then; the closing line counts them",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several workers one mostly waits for an API server, and another takes the processor: the
    tests that wait start first, since they take longest."""
    again = config.getoption("--again")
    for item in items:
        if again and item.get_closest_marker("apiserver"):
            item.add_marker(pytest.mark.flaky(reruns=again))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("apiserver") is None)


class WholeModules(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Modules stay whole, and so do folders that share a release: divided, each of their tests
    could have each worker start an operator, or install a release, of its own."""

    def _split_scope(self, nodeid: str) -> str:
        module = Path(nodeid.partition("::")[0]).relative_to(TESTS.name)
        folder = module.parts[0]
        return folder if folder in SHARED_RELEASES else str(module)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Not by marks, which xdist 3.8 writes where pytest 9.2 no longer reads them."""
    return WholeModules(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the binaries first, in sight: building them takes longer than any test may."""
    config = session.config
    needed = dict.fromkeys(_tools(session.items, config.getoption("--cluster") == "local"))
    if not needed or config.getoption("collectonly"):
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            binaries(list(needed))
        except BuildFailed as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def _tools(items: Sequence[pytest.Item], is_local: bool) -> Iterator[Tool]:
    for item in items:
        if item.get_closest_marker("apiserver"):
            yield from TOOLS if is_local else (KUBECTL, FAKE_KUBELET)
        for marker in item.iter_markers("tools"):
            yield from (KNOWN[name] for name in marker.args)
