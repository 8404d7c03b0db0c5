from __future__ import annotations

import dataclasses
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from e2e.controlplane import named, ports
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.supervised import REPOSITORY
from e2e.controlplane.supervisor import LOCK
from e2e.errors import HarnessError, ProcessFailed

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

COMPONENTS = 5
GONE_SECONDS = 20.0


def processes(folder: Path) -> set[int]:
    """Those that were started with a path of that folder."""
    found = set()
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{folder}/".encode() in command_line.read_bytes():
                found.add(int(command_line.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def await_end(folder: Path) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while left := processes(folder):
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.05)


def version(control_plane: ControlPlane) -> bytes:
    """What its API server answers to a client that is strict about certificates."""
    context = ssl.create_default_context(cafile=str(control_plane.state.folder / "ca.crt"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # Python 3.13's default
    with urllib.request.urlopen(f"{control_plane.url}/version", context=context) as answer:
        body: bytes = answer.read()
        return body


def test_two_run_side_by_side_and_leave_nothing() -> None:
    with ControlPlane.prepare("one") as one, ControlPlane.prepare("two") as two:
        assert b'"minor": "36"' in version(one)
        assert one.url != two.url
        assert len(processes(two.state.folder)) >= COMPONENTS
        two.stop()
        assert not processes(two.state.folder)
        assert version(one)
    for control_plane in (one, two):
        assert not processes(control_plane.state.folder)
        assert not control_plane.state.folder.exists()


STARTER = """
import signal, sys, time
from pathlib import Path
from e2e.controlplane.cluster import ControlPlane
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
with ControlPlane.prepare("starter", Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-C", "SIGKILL"])
def test_nothing_outlives_the_process_that_started_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"ready\n"
        starter.send_signal(number)
    await_end(tmp_path)


def test_nothing_outlives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    control_plane = named.prepare("x", tmp_path, detached=True)
    control_plane.start()
    os.kill(int((tmp_path / "x" / LOCK).read_text()), signal.SIGKILL)
    await_end(tmp_path)
    assert not named.is_running("x", tmp_path)
    assert named.names(tmp_path) == ["x"]
    assert not named.stop("x", tmp_path)
    assert named.names(tmp_path) == []
    control_plane.stop()


def test_a_named_one_runs_until_it_is_stopped(tmp_path: Path) -> None:
    control_plane = named.prepare("x", tmp_path, detached=True)
    control_plane.start()
    assert named.is_running("x", tmp_path)
    with pytest.raises(HarnessError, match="control plane x is running already"):
        named.prepare("x", tmp_path, detached=True)
    assert version(named.attach("x", tmp_path))
    assert named.stop("x", tmp_path)
    await_end(tmp_path)  # the supervisor lets go of its lock a moment before it ends
    control_plane.stop()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../kept", "a/b", "{absolute}", "-x", "a b", "x\n"]
)
def test_a_name_leads_to_no_other_folder(name: str, tmp_path: Path) -> None:
    root, kept = tmp_path / "root", tmp_path / "kept" / "file"
    for folder in (root, kept.parent):
        folder.mkdir()
    kept.touch()
    wrong = name.format(absolute=kept.parent)
    for act in (named.stop, named.is_running, named.attach):
        with pytest.raises(HarnessError, match="is no name of a control plane: letters"):
            act(wrong, root)
    with pytest.raises(HarnessError, match="is no name of a control plane: letters"):
        named.prepare(wrong, root, detached=True)
    assert kept.exists() and root.exists()


def test_a_taken_port_is_named_with_who_needs_it() -> None:
    chosen = ports.choose()
    control_plane = ControlPlane.prepare("x", chosen_ports=chosen)
    taken = socket.create_server((ports.LOOPBACK, chosen.apiserver))
    with taken, pytest.raises(ProcessFailed) as failed:
        control_plane.start()
    assert str(failed.value) == f"kube-apiserver needs port {chosen.apiserver}, which is taken"
    assert not processes(control_plane.state.folder)


def test_a_process_that_dies_at_start_is_quoted() -> None:
    control_plane = ControlPlane.prepare("x")
    found = control_plane.state.binaries
    broken = {**found, "kube-apiserver": found["kube-scheduler"]}
    dataclasses.replace(control_plane.state, binaries=broken).save()
    with pytest.raises(ProcessFailed) as failed:
        control_plane.start()
    assert "kube-apiserver ended after" in str(failed.value)
    assert "unknown flag: --etcd-servers" in str(failed.value)
    assert not processes(control_plane.state.folder)


def test_a_process_that_dies_later_ends_all_and_is_named() -> None:
    control_plane = ControlPlane.prepare("x")
    control_plane.start()
    [etcd] = [
        pid
        for pid in processes(control_plane.state.folder)
        if Path(f"/proc/{pid}/comm").read_text() == "etcd\n"
    ]
    os.kill(etcd, signal.SIGKILL)
    await_end(control_plane.state.folder)
    with pytest.raises(ProcessFailed, match=r"etcd ended after .* with exit status -9"):
        control_plane.stop()
