"""The pod of a workload: the user's narrow ``run`` block on the chosen pool, and nothing else.

Security: pods meet the Pod Security Standard ``baseline``. They run under the runtime's default
seccomp profile, cannot gain privileges, share nothing with the node, and get no token of the API
server unless the spec names a service account. ``restricted`` asks for two things more, which
would break images that people have: a user other than root (the engines' own images and most
training images run as root) and no capabilities at all (root without ``DAC_OVERRIDE`` cannot write
to volumes of another user). In a namespace that enforces ``restricted`` the pods are refused, and
the workload's conditions say so with the API server's sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from poolwise.api.run import Run
from poolwise.plan.amounts import is_whole
from poolwise.plan.children.metadata import without_empty
from poolwise.plan.children.quantity import canonical, size
from poolwise.plan.observed import Manifest
from poolwise.plan.pool import Pool

SHARED_MEMORY_PATH = "/dev/shm"
VOLUME_PREFIX = "poolwise-"
"""Names of our own volumes."""


def pod_spec(
    run: Run,
    pool: Pool,
    container: Manifest,
    volumes: Sequence[Manifest],
    priority_class: str,
    domain: Mapping[str, str] = MappingProxyType({}),
) -> Manifest:
    """Spec of the pod: tolerations are those of the pool alone, and its selector with the label of
    a ``domain`` of the fabric."""
    return without_empty(
        {
            "containers": [container],
            "enableServiceLinks": False,
            "automountServiceAccountToken": None if run.service_account_name else False,
            "imagePullSecrets": _items(run, "image_pull_secrets"),
            "nodeSelector": dict(sorted({**pool.node_selector, **domain}.items())),
            "priorityClassName": priority_class,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "serviceAccountName": run.service_account_name,
            "tolerations": [dict(toleration) for toleration in pool.tolerations],
            "volumes": [*map(_volume, _items(run, "volumes")), *volumes],
        }
    )


def container_of(run: Run, name: str, own_mounts: Iterable[Manifest], **fields: Any) -> Manifest:
    """The one container: ``fields`` are what the kind of workload decides."""
    return without_empty(
        {
            "name": name,
            "imagePullPolicy": run.image_pull_policy,
            "envFrom": _items(run, "env_from"),
            "securityContext": {"allowPrivilegeEscalation": False},
            "volumeMounts": [*_items(run, "volume_mounts"), *_free_mounts(run, own_mounts)],
            **fields,
        }
    )


def _free_mounts(run: Run, own: Iterable[Manifest]) -> list[Manifest]:
    """Those of our mounts whose place the user has not taken."""
    taken = {mount.mount_path.rstrip("/") for mount in run.volume_mounts}
    return [mount for mount in own if mount["mountPath"].rstrip("/") not in taken]


def mounted(container: Manifest, own: Iterable[Manifest]) -> list[Manifest]:
    """Those of our volumes that the container mounts."""
    names = {mount["name"] for mount in container.get("volumeMounts", ())}
    return [volume for volume in own if volume["name"] in names]


def shared_memory(size_limit_bytes: int | None = None) -> tuple[Manifest, Manifest]:
    """Volume and mount of ``/dev/shm``: collectives and data loaders need more than its 64 MiB."""
    name = f"{VOLUME_PREFIX}shm"
    limit = {"sizeLimit": size(size_limit_bytes)} if size_limit_bytes else {}
    volume = {"name": name, "emptyDir": {"medium": "Memory", **limit}}
    return volume, {"name": name, "mountPath": SHARED_MEMORY_PATH}


def claim(name: str, claim_name: str, path: str, read_only: bool) -> tuple[Manifest, Manifest]:
    """Volume and mount of a PersistentVolumeClaim."""
    source = {"claimName": claim_name, **({"readOnly": True} if read_only else {})}
    volume = {"name": f"{VOLUME_PREFIX}{name}", "persistentVolumeClaim": source}
    mount = {"name": volume["name"], "mountPath": path, "readOnly": read_only or None}
    return volume, without_empty(mount)


def resources(run: Run, pool: Pool, accelerators: int, own: Mapping[str, str]) -> Manifest:
    """Requests and limits: the user's, then ours; what cannot be overcommitted is both."""
    devices = {pool.resource: str(accelerators)} if pool.resource and accelerators else {}
    requests, limits = _canonical(run.resources.requests), _canonical(run.resources.limits)
    whole = {name: text for name, text in requests.items() if is_whole(name)}
    return without_empty(
        {
            "requests": {**requests, **own, **devices},
            "limits": {**whole, **limits, **own, **devices},
        }
    )


def environment(run: Run, own: Sequence[Manifest]) -> list[Manifest]:
    """Variables: ours first, so that the user's may refer to them, then the user's.

    A variable that both name keeps its place and gets the user's value, unless it is reserved.
    """
    users = {variable["name"]: variable for variable in _items(run, "env")}
    merged = [
        variable if _is_reserved(variable["name"]) else users.pop(variable["name"], variable)
        for variable in own
    ]
    return [*merged, *(each for name, each in users.items() if not _is_reserved(name))]


def ports(run: Run, own: Iterable[Manifest]) -> list[Manifest]:
    """Ports of the run block, and ours where neither name nor number is taken."""
    given = [{"protocol": "TCP", **port} for port in _items(run, "ports")]
    names = {port["name"] for port in given}
    numbers = {port["containerPort"] for port in given if port["protocol"] == "TCP"}
    free = (p for p in own if p["name"] not in names and p["containerPort"] not in numbers)
    return [*given, *free]


def port(name: str, number: int) -> Manifest:
    """A TCP port."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def literal(text: str) -> str:
    """Text that Kubernetes must not expand: ``$(NAME)`` stays what it is."""
    return text.replace("$(", "$$(")


def _is_reserved(name: str) -> bool:
    return name.startswith("POOLWISE_")


def _canonical(quantities: Mapping[str, str]) -> dict[str, str]:
    return {name: canonical(quantity) for name, quantity in sorted(quantities.items())}


def _volume(volume: Manifest) -> Manifest:
    scratch = volume.get("emptyDir")
    if not scratch or "sizeLimit" not in scratch:
        return volume
    return {**volume, "emptyDir": {**scratch, "sizeLimit": canonical(scratch["sizeLimit"])}}


def _items(run: Run, field: str) -> list[Manifest]:
    return list(run.as_manifest(field) or ())
