"""The five processes of a control plane: their command lines, and how to see that each is ready."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane.ports import LOOPBACK
from e2e.controlplane.state import State

STAGES = Path(__file__).parent / "stages"
FAKE_NODE = "kwok.x-k8s.io/node=fake"

FAST_CLIENT = {"kube-api-qps": "1000", "kube-api-burst": "2000"}
"""The default of 20 requests per second is what a test would measure instead of us."""


@dataclass(frozen=True)
class Component:
    """One process: the binary's name, its flags, its ports, and the URL that answers when ready."""

    name: str
    flags: dict[str, str]
    ports: tuple[int, ...]
    ready_url: str

    @property
    def arguments(self) -> list[str]:
        return [f"--{flag}={value}" for flag, value in self.flags.items()]


def start_order(state: State) -> tuple[tuple[Component, ...], ...]:
    """Groups to start one after another; the members of a group start together."""
    if not state.is_ours:
        return ((kwok(state),),)
    return (
        (etcd(state),),
        (apiserver(state),),
        (controller_manager(state), scheduler(state), kwok(state)),
    )


def etcd(state: State) -> Component:
    """Without fsync: what a control plane for tests holds need not survive a power cut."""
    clients = f"http://{LOOPBACK}:{state.ports.etcd}"
    peers = f"http://{LOOPBACK}:{state.ports.etcd_peers}"
    flags = {
        "data-dir": str(state.folder / "etcd"),
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return Component("etcd", flags, (state.ports.etcd, state.ports.etcd_peers), f"{clients}/health")


def apiserver(state: State) -> Component:
    """With RBAC, the default admission plugins, and an audit log of every write."""
    folder = state.folder
    flags = {
        "etcd-servers": f"http://{LOOPBACK}:{state.ports.etcd}",
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,  # else it wants a default route
        "endpoint-reconciler-type": "none",  # a loopback address cannot be an endpoint
        "secure-port": str(state.ports.apiserver),
        **_serving(folder),
        "client-ca-file": str(folder / "ca.crt"),
        "service-account-key-file": str(folder / "service-accounts.pub"),
        "service-account-signing-key-file": str(folder / "service-accounts.key"),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-cluster-ip-range": "10.0.0.0/16",
        "authorization-mode": "Node,RBAC",
        # Fake nodes are ready at once: this plugin would taint each as not ready, only for the
        # controller manager to take the taint away again.
        "disable-admission-plugins": "TaintNodesByCondition",
        "allow-privileged": "true",
        "audit-policy-file": str(folder / "audit-policy.json"),
        "audit-log-path": str(state.audit_log),
        "audit-log-maxsize": "0",  # never rotated: marks are offsets in it
    }
    return Component("kube-apiserver", flags, (state.ports.apiserver,), f"{state.url}/readyz")


def controller_manager(state: State) -> Component:
    """Ready once it has made the service account that pods of the default namespace need."""
    flags = {
        "kubeconfig": str(state.folder / "kube-controller-manager.kubeconfig"),
        "secure-port": "0",
        "leader-elect": "false",
        "service-account-private-key-file": str(state.folder / "service-accounts.key"),
        "root-ca-file": str(state.folder / "ca.crt"),
        "controllers": "*,-ttl-controller",  # writes an annotation for kubelets on every node
        "node-monitor-grace-period": "24h",  # fake nodes send no heartbeats worth watching
        "concurrent-job-syncs": "20",
        "concurrent-deployment-syncs": "20",
        "concurrent-replicaset-syncs": "20",
        **FAST_CLIENT,
    }
    ready_url = f"{state.url}/api/v1/namespaces/default/serviceaccounts/default"
    return Component("kube-controller-manager", flags, (), ready_url)


def scheduler(state: State) -> Component:
    """The default profile."""
    flags = {
        "kubeconfig": str(state.folder / "kube-scheduler.kubeconfig"),
        "bind-address": LOOPBACK,
        "secure-port": str(state.ports.scheduler),
        **_serving(state.folder),
        "leader-elect": "false",
        **FAST_CLIENT,
    }
    ready_url = f"https://{LOOPBACK}:{state.ports.scheduler}/readyz"
    return Component("kube-scheduler", flags, (state.ports.scheduler,), ready_url)


def kwok(state: State) -> Component:
    """Plays the kubelets of fake nodes, as the files in ``stages`` say.

    In our own cluster all nodes are fake. Elsewhere the marked ones are, and renew a lease, without
    which the controllers would give them up.
    """
    address = f"{LOOPBACK}:{state.ports.kwok}"
    marked = "manage-nodes-with-annotation-selector"
    flags = {
        "kubeconfig": str(state.folder / "kwok.kubeconfig"),
        **({"manage-all-nodes": "true"} if state.is_ours else {marked: FAKE_NODE}),
        "config": str(STAGES),
        "cidr": "127.64.0.0/10",  # of this machine: tests answer there as pods would
        "node-lease-duration-seconds": "0" if state.is_ours else "40",
        "server-address": address,
    }
    return Component("kwok", flags, (state.ports.kwok,), f"http://{address}/healthz")


def _serving(folder: Path) -> dict[str, str]:
    return {
        "tls-cert-file": str(folder / "server.crt"),
        "tls-private-key-file": str(folder / "server.key"),
    }
