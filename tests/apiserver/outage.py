"""A way to the API server that a test can cut, or silence, and mend."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from e2e.controlplane import ports
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.ports import LOOPBACK
from e2e.running import Running

CHUNK_BYTES = 1 << 16


class Line(Running):
    """Passes connections on to the API server, while it is not cut."""

    def __init__(self, control_plane: ControlPlane) -> None:
        [self._port] = ports.free(1)
        self._control_plane = control_plane
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()

    def kubeconfig_for(self, user: str, folder: Path) -> Path:
        """A kubeconfig of ``user`` that leads over this line."""
        direct = self._control_plane.kubeconfig_for(user).read_text(encoding="utf-8")
        path = folder / "line.kubeconfig"
        path.write_text(direct.replace(self._control_plane.url, self.url), encoding="utf-8")
        return path

    @property
    def url(self) -> str:
        """Where the API server seems to be."""
        return f"https://{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Let connections through."""
        listener = socket.create_server((LOOPBACK, self._port))
        self._keep(listener)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """Cut it: open connections break, new ones are refused."""
        with self._lock:
            for end in self._ends:
                _cut(end)
            self._ends.clear()
        self._flows.set()

    def silence(self) -> None:
        """Nothing passes any more, and nobody is told: as behind a firewall that forgot us."""
        self._flows.clear()

    def _keep(self, *ends: socket.socket, of: socket.socket | None = None) -> bool:
        """To cut them later; or at once, what came through ``of`` as it was cut itself."""
        with self._lock:
            if of is None or of in self._ends:
                self._ends += ends
                return True
        for end in ends:
            _cut(end)
        return False

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(
                        (LOOPBACK, self._control_plane.state.ports.apiserver)
                    )
                except OSError:  # nobody listens there just now
                    near.close()
                    continue
                if not self._keep(near, far, of=listener):
                    return
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                self._flows.wait()
                sink.sendall(data)
        self._flows.wait()
        with contextlib.suppress(OSError):  # also where the source broke, as an API server's does
            sink.shutdown(socket.SHUT_WR)


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
