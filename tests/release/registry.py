"""An OCI registry in memory, as much of it as pushing a chart needs."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:[0-9a-f]{64})")
MANIFEST = re.compile(r"/v2/(.+)/manifests/(\S+)")


@dataclass(frozen=True)
class Stored:
    """What was pushed, and as what."""

    content: bytes
    media_type: str = "application/octet-stream"

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


class Registry(ThreadingHTTPServer):
    """Holds blobs by digest, and manifests by ``name:tag`` and ``name@digest``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.blobs: dict[str, Stored] = {}
        self.manifests: dict[str, Stored] = {}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Requests(BaseHTTPRequestHandler):
    server: Registry
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(*self._found())

    def do_GET(self) -> None:
        status, stored = self._found()
        self._answer(status, stored)
        self.wfile.write(stored.content)

    def do_POST(self) -> None:
        """Where a blob may be put."""
        self._read()
        self._answer(202, location=f"{self.path.rstrip('/')}/upload")

    def do_PUT(self) -> None:
        asked = urlsplit(self.path)
        put = Stored(self._read(), self.headers.get("Content-Type", ""))
        if found := MANIFEST.fullmatch(asked.path):
            self.server.manifests |= {_key(*found.groups()): put, f"{found[1]}@{put.digest}": put}
        elif parse_qs(asked.query).get("digest") == [put.digest]:
            self.server.blobs[put.digest] = put
        else:
            return self._answer(400)
        self._answer(201, location=asked.path, digest=put.digest)

    def _found(self) -> tuple[int, Stored]:
        path = urlsplit(self.path).path
        if found := BLOB.fullmatch(path):
            stored = self.server.blobs.get(found[2])
        elif found := MANIFEST.fullmatch(path):
            stored = self.server.manifests.get(_key(*found.groups()))
        else:
            stored = Stored(b"")  # /v2/ asks whether this is a registry
        return (200, stored) if stored else (404, Stored(b""))

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(
        self, status: int, stored: Stored | None = None, *, location: str = "", digest: str = ""
    ) -> None:
        self.send_response(status)
        stored = stored or Stored(b"")
        self.send_header("Content-Length", str(len(stored.content)))
        self.send_header("Content-Type", stored.media_type)
        self.send_header("Docker-Content-Digest", digest or stored.digest)
        if location:
            self.send_header("Location", location)
        self.end_headers()


def _key(name: str, reference: str) -> str:
    return f"{name}{'@' if reference.startswith('sha256:') else ':'}{reference}"


@contextmanager
def running() -> Iterator[Registry]:
    """A registry on a free port of this machine."""
    with Registry() as registry:
        thread = threading.Thread(target=registry.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            thread.join()
