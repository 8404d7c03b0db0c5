"""Controllers of others for the tests of one file; where they cannot be had, the tests say why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from e2e.kind.integrations import Integration, Kubectl, Unavailable, installed


@contextmanager
def integrated(
    request: pytest.FixtureRequest, kubectl: Kubectl, *wanted: Integration
) -> Iterator[None]:
    """With these on the cluster, in this order; the tests are skipped where one cannot be had."""
    cluster: str = request.config.getoption("--kind")
    with ExitStack() as stack:
        try:
            for each in wanted:
                stack.enter_context(installed(each, kubectl, cluster))
        except Unavailable as missing:
            pytest.skip(str(missing))
        yield
