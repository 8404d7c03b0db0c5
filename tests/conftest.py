"""Options of the whole suite, and what it has to have before its first test."""

from __future__ import annotations

import pytest

from e2e.errors import BuildFailed
from e2e.tools.build import binaries
from e2e.tools.catalog import FAKE_KUBELET, KUBECTL, TOOLS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        default="local",
        metavar="local|context:NAME",
        help="the API server for the tests that need one: a control plane of this machine's own "
        "(the default), or the context of that name in your kubeconfig",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the binaries first, in sight: building them takes longer than any test may."""
    config = session.config
    needed = any(item.get_closest_marker("apiserver") for item in session.items)
    if not needed or config.getoption("collectonly"):
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            binaries(TOOLS if config.getoption("--cluster") == "local" else (KUBECTL, FAKE_KUBELET))
        except BuildFailed as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
