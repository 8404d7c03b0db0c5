from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from e2e.controlplane import certificates
from e2e.controlplane.certificates import Authority, Pair
from poolwise.cli.app import app
from poolwise.cli.explain import parse_target
from poolwise.cluster.resources import INFERENCE_SERVICES, TRAINING_JOBS, Resource
from poolwise.errors import InvalidInput, Unauthorized, Unreachable, Untrusted

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: one, context: {{cluster: c, user: u}}}}]
"""

GET = "get /apis/poolwise.dev/v1alpha1/namespaces/default/trainingjobs/x"


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
    server = f"the API server https://127.0.0.1:{port}"
    assert str(told) == f"{server} does not answer: {GET}: Connection refused"


class _Stranger(BaseHTTPRequestHandler):
    """Knows nobody."""

    def do_GET(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(pair: Pair, folder: Path) -> Iterator[int]:
    """A server that shows this certificate; its port."""
    both = folder / "server.pem"
    both.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stranger)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(pair: Pair, trusted: Authority, folder: Path) -> tuple[BaseException | None, str]:
    """What is said of a server with this certificate, and its address."""
    with served(pair, folder) as port:
        trusted.save(folder)
        path = folder / "config"
        server = f'server: "https://127.0.0.1:{port}"'
        authority = f'certificate-authority: "{folder}/ca.crt"'
        text = KUBECONFIG.format(port=port).replace(server, f"{server}, {authority}")
        path.write_text(text)
        told = CliRunner().invoke(app, ["explain", "tj/x", "--kubeconfig", str(path)])
    return told.exception, f"the API server https://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("is_ours", "address", "lasts", "why"),
    [
        pytest.param(False, "127.0.0.1", 1, "unable to get local issuer certificate", id="other"),
        pytest.param(True, "127.0.0.1", -0.5, "certificate has expired", id="expired"),
        pytest.param(True, "127.0.0.2", 1, "IP address mismatch, .*'127.0.0.1'", id="wrong host"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_no_silence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_ours: bool,
    address: str,
    lasts: float,
    why: str,
) -> None:
    authority = Authority.create()
    trusted = authority if is_ours else Authority.create()
    monkeypatch.setattr(certificates, "VALIDITY", timedelta(hours=lasts))
    told, server = asked(authority.server((), (address,)), trusted, tmp_path)
    assert isinstance(told, Untrusted)
    assert re.fullmatch(f"{server} shows no certificate that is trusted: {GET}: {why}.*", str(told))


def test_who_does_not_let_us_in_is_told_without_its_page(tmp_path: Path) -> None:
    authority = Authority.create()
    told, server = asked(authority.server((), ("127.0.0.1",)), authority, tmp_path)
    assert isinstance(told, Unauthorized)
    answer = "401 Unauthorized, in a web page: a proxy wrote it"
    assert str(told) == f"{server} does not accept our credentials: {GET}: {answer}"
