"""Write kubeconfig files."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import yaml

from e2e.controlplane.certificates import Pair


def write(path: Path, server: str, authority: bytes, client: Pair, name: str) -> Path:
    """A kubeconfig with one context, ``name``, everything inside, readable by its owner only."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": _base64(authority)},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def with_token(source: Path, token: str, path: Path) -> Path:
    """A kubeconfig for the same cluster as ``source``'s, but for the bearer of ``token``."""
    document = yaml.safe_load(source.read_text())
    for user in document["users"]:
        user["user"] = {"token": token}
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _base64(pem: bytes) -> str:
    return b64encode(pem).decode()
