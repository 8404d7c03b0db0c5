"""The service account that a pod's own token is for."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def owner_references(namespace: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """What makes an object of that namespace go together with our service account.

    Empty outside a pod, for a token that does not tell the account's uid, and for another
    namespace: there the garbage collector would look for the owner, not find it, and delete.
    """
    claims = _claims(folder / "token")
    try:
        account = claims["serviceaccount"]
        if claims["namespace"] != namespace:
            return []
        reference = {"name": str(account["name"]), "uid": str(account["uid"])}
    except (KeyError, TypeError):
        return []
    return [{"apiVersion": "v1", "kind": "ServiceAccount", **reference}]


def _claims(token: Path) -> dict[str, Any]:
    """The claims that Kubernetes adds to a token; unverified, since we only name ourselves."""
    try:
        payload = token.read_text().split(".")[1]
        padded = payload + "=" * (-len(payload) % 4)
        claims = json.loads(base64.urlsafe_b64decode(padded))["kubernetes.io"]
    except (OSError, IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}
