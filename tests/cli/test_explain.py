from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from poolwise.cli.app import app
from poolwise.cli.explain import parse_target
from poolwise.cluster.resources import INFERENCE_SERVICES, TRAINING_JOBS, Resource
from poolwise.errors import InvalidInput, Unreachable

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: one, context: {{cluster: c, user: u}}}}]
"""


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("tj", TRAINING_JOBS),
        ("TrainingJob", TRAINING_JOBS),
        ("trainingjobs", TRAINING_JOBS),
        ("isvcp", INFERENCE_SERVICES),
        ("inferenceservices.poolwise.dev", INFERENCE_SERVICES),
    ],
)
def test_kinds_are_spelt_as_for_kubectl(kind: str, resource: Resource) -> None:
    assert parse_target(f"{kind}/x") == (resource, "x")


@pytest.mark.parametrize("target", ["tj", "tj/", "pod/x", "tj/a/b", ""])
def test_anything_else_is_told_what_to_write(target: str) -> None:
    with pytest.raises(InvalidInput, match="write tj/NAME"):
        parse_target(target)


def test_an_api_server_that_is_away_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        path, port = tmp_path / "config", taken.getsockname()[1]
        path.write_text(KUBECONFIG.format(port=port))
        told = CliRunner().invoke(app, ["explain", "tj/x", "--kubeconfig", str(path)]).exception
    assert isinstance(told, Unreachable)
    asked = "get /apis/poolwise.dev/v1alpha1/namespaces/default/trainingjobs/x"
    server = f"the API server https://127.0.0.1:{port}"
    assert str(told) == f"{server} does not answer: {asked}: Connection refused"
