"""The operator's own client, on a real API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from poolwise.cluster.connection import Connection
from poolwise.cluster.kube import ApiKube
from poolwise.cluster.metrics import Metrics
from poolwise.plan.observed import Object
from poolwise.settings import Settings

pytestmark = pytest.mark.apiserver

TEXTS = {
    "emoji": "🚀 and 👩‍🔬",
    "beyond-the-bmp": "\U00010348\U0010ffff",
    "letters": "größer, 大きい, ещё",
    "ends-of-lines": "a\u0085b\u2028c\u2029d\r\n\te",
    "controls": "\x01\x1f\x7f\x9f\ufeff",
    "escapes": r"\ud83d\ude80 \U0001F680 \\n %20",
    "yaml": "{{a}}: [b] # c & *d !e |\n- 'f' \"g\"",
}


def service(namespace: str, name: str, text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"example.com/t": text}},
        "spec": {"ports": [{"port": 80}]},
    }


def text_of(document: Object) -> str:
    return str(document["metadata"]["annotations"]["example.com/t"])


def says(text: str) -> Object:
    since = "2026-01-01T00:00:00Z"
    known = {"type": "Told", "status": "True", "reason": "Told", "lastTransitionTime": since}
    return {**known, "message": text}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_is_what_is_stored(name: str, kubeconfig: Path, namespace: str) -> None:
    """By every verb, whatever the text."""
    text, more = TEXTS[name], f"again: {TEXTS[name]}"

    async def write() -> list[str]:
        connection = Connection(Settings(), str(kubeconfig))
        await connection.log_in()
        kube = ApiKube(connection.client(), Settings(), Metrics().requests)
        try:
            applied = await kube.apply(service(namespace, "applied", text))
            changes = {"metadata": {"annotations": {"example.com/t": more}}}
            patched = await kube.patch(applied, changes)
            created = await kube.create(service(namespace, "created", text))
            metadata = {**created["metadata"], "annotations": {"example.com/t": more}}
            replaced = await kube.replace({**created, "metadata": metadata})
            told = await kube.patch(replaced, {"status": {"conditions": [says(text)]}}, "status")
        finally:
            await kube.close()
        texts = [text_of(each) for each in (applied, patched, created, replaced)]
        return [*texts, told["status"]["conditions"][0]["message"]]

    assert asyncio.run(write()) == [text, more, text, more, text]
