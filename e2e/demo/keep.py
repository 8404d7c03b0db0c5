"""The demo's operator when it stays: it ends with the control plane that it serves."""

from __future__ import annotations

import subprocess
import sys
import time

from e2e.controlplane import named
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.supervised import REPOSITORY
from e2e.operator_process import OperatorProcess

NAME = "demo"
POLL_SECONDS = 0.2


def start_operator(control_plane: ControlPlane) -> None:
    """Start the operator in a process of its own, which :func:`main` watches over."""
    log = control_plane.state.log("operator-keeper")
    with log.open("w") as output:
        subprocess.Popen(
            [sys.executable, "-m", "e2e.demo.keep"],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # ctrl-C in the demo's terminal must not reach it
        )


def main() -> None:
    """Serve until the control plane is stopped or the operator gives up."""
    state = named.attach(NAME).state
    with OperatorProcess(state.kubeconfig, state.log("operator")) as operator:
        while named.is_running(NAME) and operator.is_running:
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
