"""Credentials: where they come from, and what is said when they are not there."""

from __future__ import annotations

import asyncio
import os

import pytest
import yaml
from kubernetes.aio.config import incluster_config

from poolwise.cluster.connection import Connection
from poolwise.errors import InvalidInput
from poolwise.settings import Settings

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: one, context: {cluster: c, user: u}}]
"""


def log_in(path, context=None):
    connection = Connection(Settings(client_connections=7), str(path), context)
    asyncio.run(connection.log_in())
    return connection.configuration


def test_address_and_token_come_from_the_kubeconfig(tmp_path):
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    configuration = log_in(path)
    assert configuration.host == "https://127.0.0.1:6443"
    assert asyncio.run(configuration.auth_settings())["BearerToken"]["value"] == "Bearer secret"
    assert configuration.connection_pool_maxsize == 7


def test_a_new_token_is_picked_up_by_logging_in_again(tmp_path):
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    connection = Connection(Settings(), str(path))
    asyncio.run(connection.log_in())
    path.write_text(KUBECONFIG.replace("secret", "renewed"))
    asyncio.run(connection.log_in())
    settings = asyncio.run(connection.configuration.auth_settings())
    assert settings["BearerToken"]["value"] == "Bearer renewed"


@pytest.mark.parametrize(
    ("text", "context", "says"),
    [
        pytest.param(None, None, "no such file", id="missing"),
        pytest.param("{", None, ": is not a kubeconfig: line 1, column 2: ", id="not-yaml"),
        pytest.param("{}", None, "names no current-context.*; it has none$", id="empty-object"),
        pytest.param("", None, ": is not a kubeconfig: it is empty$", id="empty"),
        pytest.param("nonsense", None, ": is not a kubeconfig: it is not a mapping", id="text"),
        pytest.param("[]", None, ": is not a kubeconfig: it is not a mapping", id="list"),
        pytest.param(
            KUBECONFIG.replace("{name: u, user: {token: secret}}", ""),
            None,
            "context one names user u, and it has no users$",
            id="no-user",
        ),
        pytest.param(
            KUBECONFIG.replace("cluster: c", "cluster: d"),
            None,
            "context one names cluster d, and its clusters are c$",
            id="no-cluster",
        ),
        pytest.param(
            KUBECONFIG.replace(", user: u", ""), None, "context one names no user$", id="no-name"
        ),
        pytest.param(
            KUBECONFIG.replace("https://127", "127"),
            None,
            "cluster c has server '127.0.0.1:6443'; it must begin with https:// or http://$",
            id="no-scheme",
        ),
        pytest.param(
            KUBECONFIG.replace(
                "token: secret", "client-certificate-data: bm9uZQ==, client-key-data: bm9uZQ=="
            ),
            None,
            "PEM",
            id="no-certificate",
        ),
        pytest.param(KUBECONFIG, "two", ": has no context two; it has one$", id="no-such-context"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said_in_one_sentence(tmp_path, text, context, says):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=says) as caught:
        log_in(path, context)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_bytes_are_told_as_what_they_are(tmp_path):
    with pytest.raises(InvalidInput, match=r"is a directory$"):
        log_in(tmp_path)
    path = tmp_path / "config"
    path.write_bytes(b"\xa8\x00")
    with pytest.raises(InvalidInput, match=r"is not text in UTF-8$"):
        log_in(path)


def test_a_plain_server_needs_no_user(tmp_path):
    """As ``kubectl proxy`` is reached."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace("https:", "http:").replace(", user: u", ""))
    assert log_in(path).host == "http://127.0.0.1:6443"


def test_several_files_are_one(tmp_path):
    """The first one's contexts, the second one's clusters and users; one is not there."""
    head, *rest = KUBECONFIG.strip().split("clusters:")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(f"{head}contexts: [{{name: one, context: {{cluster: c, user: u}}}}]")
    second.write_text(f"clusters:{rest[0]}")
    where = os.pathsep.join(map(str, (tmp_path / "none", first, second)))
    assert log_in(where).host == "https://127.0.0.1:6443"


def test_a_named_context_needs_no_current_one(tmp_path):
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace("current-context: one\n", ""))
    assert log_in(path, "one").host == "https://127.0.0.1:6443"


@pytest.mark.parametrize(
    ("context", "namespace"), [(None, "default"), ("one", "default"), ("two", "research")]
)
def test_the_namespace_is_that_of_the_context_in_use(tmp_path, context, namespace):
    path = tmp_path / "config"
    two = "{name: two, context: {cluster: c, user: u, namespace: research}}"
    text = KUBECONFIG.replace("current-context: one\n", "")
    path.write_text(text.replace("contexts: [", f"contexts: [{two}, "))
    connection = Connection(Settings(), str(path), context)
    assert connection.context_namespace() == namespace


@pytest.fixture
def in_pod(monkeypatch, tmp_path):
    """The files and variables that a kubelet gives to a pod; where the files are."""
    for name, text in (("token", "secret"), ("ca.crt", "PEM"), ("namespace", "poolwise-system\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr("poolwise.cluster.connection._NAMESPACE_FILE", tmp_path / "namespace")
    return tmp_path


def test_a_pod_uses_its_service_account_and_its_namespace(in_pod):
    connection = Connection(Settings())
    asyncio.run(connection.log_in())
    assert connection.configuration.host == "https://10.96.0.1:443"
    settings = asyncio.run(connection.configuration.auth_settings())
    assert settings["BearerToken"]["value"] == "bearer secret"
    assert connection.namespace == "poolwise-system"
    assert connection.context_namespace() == "poolwise-system"


def test_a_pod_without_a_token_is_told_so(in_pod):
    (in_pod / "token").unlink()
    with pytest.raises(InvalidInput, match="service account of this pod: Service token file"):
        asyncio.run(Connection(Settings()).log_in())


@pytest.mark.parametrize(
    ("script", "says"),
    [
        pytest.param(
            "echo token has expired >&2; exit 3", "returned 3.*token has expired", id="exit"
        ),
        pytest.param("echo words", "failed to decode process output", id="no-answer"),
        pytest.param('echo \'{"status": {}, "kind": "ExecCredential"}\'', "exec: ", id="empty"),
    ],
)
def test_a_program_that_fails_to_log_in_is_told_in_the_same_sentence(tmp_path, capfd, script, says):
    """The client only logs it, and goes on as nobody."""
    version = "client.authentication.k8s.io/v1"
    program = {"apiVersion": version, "command": "sh", "args": ["-c", script]}
    document = yaml.safe_load(KUBECONFIG)
    document["users"][0]["user"] = {"exec": program}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(InvalidInput, match=f"^kubeconfig {path}: cannot log in: .*{says}"):
        log_in(path)
    assert capfd.readouterr().err == ""
