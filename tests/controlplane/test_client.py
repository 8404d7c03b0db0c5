"""The client of tests and tools, before an API server that a test plays."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from e2e.controlplane.client import Client
from e2e.controlplane.ports import LOOPBACK

PODS = {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "verbs": ["list"]}
GOING = {"groupVersion": "example.com/v1", "version": "v1"}
GROUP = {"name": "example.com", "versions": [GOING], "preferredVersion": GOING}
ANSWERS = {
    "/version": {"gitVersion": "v1.36.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [PODS]},
    "/api/v1/pods": {"items": [{"metadata": {"name": "one"}}]},
    "/apis": {"kind": "APIGroupList", "groups": [GROUP]},
}


class Handler(BaseHTTPRequestHandler):
    """Discovery tells of a group whose CRDs are gone, as for a moment after they were deleted."""

    def do_GET(self) -> None:  # the name that the library asks for
        answer = ANSWERS.get(self.path.partition("?")[0])
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer or {"kind": "Status", "code": 404}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nobody reads it."""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "kubeconfig"
        cluster = {"server": f"http://{LOOPBACK}:{server.server_address[1]}"}
        context = {"cluster": "played", "user": "anybody"}
        path.write_text(
            yaml.safe_dump(
                {
                    "current-context": "played",
                    "clusters": [{"name": "played", "cluster": cluster}],
                    "contexts": [{"name": "played", "context": context}],
                    "users": [{"name": "anybody", "user": {}}],
                }
            )
        )
        client = Client(path)
        yield client
        client.close()
        server.shutdown()


def test_a_group_that_goes_keeps_nobody_from_the_core(client: Client) -> None:
    [pod] = client.list("v1", "Pod")
    assert pod["metadata"]["name"] == "one"
