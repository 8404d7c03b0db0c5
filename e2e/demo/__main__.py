"""``make demo``: a real control plane, fake nodes, the operator, and the examples placed."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from e2e.controlplane import named
from e2e.controlplane.cluster import ControlPlane
from e2e.demo import keep
from e2e.demo.stage import NAMESPACE, apply_examples, prepare, show, wait_until_told
from e2e.errors import HarnessError
from e2e.operator_process import OperatorProcess
from e2e.progress import say


def main() -> int:
    """Run the demo; 1 when a workload was not told where it runs."""
    parser = argparse.ArgumentParser(prog="python -m e2e.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave all of it running")
    keeps = parser.parse_args().keep
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every `with` ends
    try:
        return _left_running() if keeps else _alone()
    except HarnessError as error:
        say(f"the demo stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("\n==> ended")
        return 130


def _alone() -> int:
    say("==> starting etcd, API server, controllers, scheduler and fake kubelets")
    with ControlPlane.prepare("poolwise-demo") as control_plane:
        say(f"    ready after {control_plane.ready_seconds:.1f} s")
        prepare(control_plane)
        with OperatorProcess(control_plane.kubeconfig, control_plane.state.log("operator")):
            told = _play(control_plane)
        say("==> stopping everything (KEEP=1 make demo leaves it running)")
    return 0 if told else 1


def _left_running() -> int:
    if named.is_running(keep.NAME):
        say(f"==> the demo's control plane is running: make cluster-down CLUSTER={keep.NAME}")
        return 1
    say("==> starting etcd, API server, controllers, scheduler and fake kubelets, to stay")
    control_plane = named.prepare(keep.NAME, detached=True)
    control_plane.start()
    try:
        prepare(control_plane)
        keep.start_operator(control_plane)
        told = _play(control_plane)
    except BaseException:
        named.stop(keep.NAME)
        raise
    _next_commands(control_plane)
    return 0 if told else 1


def _play(control_plane: ControlPlane) -> bool:
    apply_examples(control_plane)
    told = wait_until_told(control_plane)
    show(control_plane)
    return told


def _next_commands(control_plane: ControlPlane) -> None:
    kubectl = control_plane.state.binaries["kubectl"]
    poolwise = Path(sys.executable).with_name("poolwise")
    say(
        f"""
Everything keeps running. Next, try:
  export KUBECONFIG={control_plane.kubeconfig}
  alias kubectl={kubectl}
  kubectl get tj,isvcp -n {NAMESPACE}
  {poolwise} explain tj/llama-70b -n {NAMESPACE}
  kubectl get apool
  kubectl get pods -n {NAMESPACE} -o wide
and when you have seen enough:
  make cluster-down CLUSTER={keep.NAME}"""
    )


if __name__ == "__main__":
    sys.exit(main())
