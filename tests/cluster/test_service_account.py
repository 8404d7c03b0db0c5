"""Who we are, read from the token that a pod is given."""

from __future__ import annotations

import base64
import json

import pytest

from poolwise.cluster.service_account import owner_references

ACCOUNT = {"name": "poolwise", "uid": "0b4b7f3e-52d6-4f9a-8a1c-9f8e7d6c5b4a"}
BOUND = {"kubernetes.io": {"namespace": "poolwise-system", "serviceaccount": ACCOUNT}}


def token(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


def test_the_account_of_the_token_owns(tmp_path):
    (tmp_path / "token").write_text(token(BOUND))
    [owner] = owner_references("poolwise-system", tmp_path)
    assert owner == {"apiVersion": "v1", "kind": "ServiceAccount", **ACCOUNT}


def test_nothing_is_owned_across_namespaces(tmp_path):
    (tmp_path / "token").write_text(token(BOUND))
    assert owner_references("elsewhere", tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one-part",
        "a.b.c",
        "a.%%%.c",
        token({}),
        token([]),
        token({"kubernetes.io": "text"}),
        token({"kubernetes.io": {"namespace": "poolwise-system"}}),
        token({"kubernetes.io": {"namespace": "poolwise-system", "serviceaccount": "text"}}),
    ],
)
def test_a_token_that_does_not_tell_owns_nothing(tmp_path, text):
    (tmp_path / "token").write_text(text)
    assert owner_references("poolwise-system", tmp_path) == []


def test_outside_a_pod_nothing_is_owned(tmp_path):
    assert owner_references("poolwise-system", tmp_path / "nowhere") == []
