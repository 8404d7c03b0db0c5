"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        default="local",
        metavar="local|context:NAME",
        help="the API server for the tests that need one: a control plane of this machine's own "
        "(the default), or the context of that name in your kubeconfig",
    )
