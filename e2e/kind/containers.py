"""The nodes of a kind cluster as what they are: containers of this machine."""

from __future__ import annotations

from e2e.errors import ProcessFailed
from e2e.kind.command import attempt, run

KILL_POD = """
for file in /proc/[0-9]*/cgroup; do
  if grep -qE "pod($1|$2)" "$file" 2>/dev/null; then
    process=${file#/proc/}; process=${process%/cgroup}
    [ "$(cat /proc/$process/comm)" = pause ] || kill -KILL "$process"
  fi
done
"""
KUBELET_HEALTH = "http://127.0.0.1:10248/healthz"


def inside(node: str, *command: str) -> str:
    """What a command printed that ran on a node; raises :class:`ProcessFailed`."""
    return run(["docker", "exec", node, *command])


def kill_pod(node: str, uid: str) -> None:
    """End all processes of a pod at once, as the kernel does when it is out of memory.

    The kubelet, which would ask them politely, is not involved; it restarts them.
    """
    inside(node, "bash", "-c", KILL_POD, "kill-pod", uid, uid.replace("-", "_"))


def silent_kubelet(node: str) -> str:
    """What a node's kubelet said last, where it does not say that it is healthy; else nothing."""
    if attempt(["docker", "exec", node, "curl", "-sfm5", KUBELET_HEALTH]).returncode == 0:
        return ""
    journal = ["journalctl", "--unit=kubelet", "--lines=10", "--output=cat", "--no-pager"]
    asked = attempt(["docker", "exec", node, *journal])
    return f"the kubelet of {node} is not healthy:\n{asked.stdout}{asked.stderr}".rstrip()


def restart_kubelet(node: str) -> None:
    """Restart a node's kubelet; its pods run on."""
    inside(node, "systemctl", "restart", "kubelet")


def pause(node: str) -> None:
    """Let a node fall silent with all that runs on it, as one that lost its network or power."""
    run(["docker", "pause", node])


def resume(node: str) -> None:
    """Let it go on; nothing happens when it does."""
    resumed = attempt(["docker", "unpause", node])
    if resumed.returncode and "not paused" not in resumed.stderr:
        raise ProcessFailed(f"docker unpause {node}: {resumed.stderr.strip()}")
