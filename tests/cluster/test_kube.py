"""What the client makes of answers that are none."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes.aio.client import ApiClient, Configuration

from poolwise.cluster.kube import ApiKube
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import PODS
from poolwise.errors import Untrusted
from poolwise.settings import Settings
from tests.cluster.broken_server import BrokenServer


def test_a_failure_of_tls_is_no_silence():
    """A certificate of another authority is the usual one; here nobody speaks TLS at all."""

    async def ask() -> None:
        async with BrokenServer().served() as url:
            secure = Configuration(host=url.replace("http:", "https:"))
            kube = ApiKube(ApiClient(secure), Settings(), Metrics().requests)
            try:
                await kube.peek(PODS)
            finally:
                await kube.close()

    with pytest.raises(Untrusted, match=r"list /api/v1/pods: .*SSL"):
        asyncio.run(ask())
