"""The binaries, and where their versions are pinned.

The only place that states a version is a ``require`` or ``replace`` line of a ``go.mod`` beside
this file; everything else reads it from there.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MODULES = Path(__file__).resolve().parent

BUILD_ENVIRONMENT: Mapping[str, str] = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
"""Static binaries, whatever the caller's own Go settings are. GOPROXY and the like stay theirs."""


@dataclass(frozen=True)
class Module:
    """A Go module of ours that pins the sources of some binaries.

    ``pinned`` is the module whose version the binaries have; ``version_package`` is the Go package
    that has to be told it by the linker, without which they report v0.0.0.
    """

    folder: str
    pinned: str
    version_package: str = ""
    tags: str = ""
    """Build tags, which may leave out what we do not use."""

    @property
    def path(self) -> Path:
        return MODULES / self.folder

    @cached_property
    def version(self) -> str:
        """``v1.36.3``, as ``go.mod`` says."""
        pinned = re.escape(self.pinned)
        text = (self.path / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s*{pinned} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise LookupError(f"{self.path / 'go.mod'} does not require {self.pinned}")
        return found[1]

    @property
    def minor(self) -> str:
        """``1.36``: binaries of one minor version do for each other."""
        major, minor = self.version.removeprefix("v").split(".")[:2]
        return f"{major}.{minor}"

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of ``go build``: only the locked sources, reproducible, without symbols."""
        linker = "-s -w"
        if self.version_package:
            major, minor = self.minor.split(".")
            stamp = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
            linker += "".join(f" -X {self.version_package}.{k}={v}" for k, v in stamp.items())
        tags = ("-tags", self.tags) if self.tags else ()
        return ("-mod=readonly", "-buildvcs=false", "-trimpath", *tags, "-ldflags", linker)

    @property
    def key(self) -> str:
        """Names what a build depends on; a change of any of it is another key."""
        digest = hashlib.sha256()
        for part in ("go.mod", "go.sum"):
            digest.update((self.path / part).read_bytes())
        digest.update(repr((self.flags, platform.system(), platform.machine())).encode())
        return f"{self.folder}-{self.version}-{digest.hexdigest()[:12]}"


ETCD = Module("etcd", "go.etcd.io/etcd/server/v3")
KUBERNETES = Module("kubernetes", "k8s.io/kubernetes", "k8s.io/component-base/version")
KWOK = Module("kwok", "sigs.k8s.io/kwok")
HELM_MODULE = Module("helm", "helm.sh/helm/v4", "helm.sh/helm/v4/internal/version")
KUBECONFORM_MODULE = Module("kubeconform", "github.com/yannh/kubeconform")
PROMETHEUS = Module(
    "promtool", "github.com/prometheus/prometheus", tags="remove_all_sd"
)  # the clouds' service discovery is most of its sources, and rules need none of it
KIND_MODULE = Module("kind", "sigs.k8s.io/kind")
TRAINER_MODULE = Module("trainer", "github.com/kubeflow/trainer/v2")


@dataclass(frozen=True)
class Tool:
    """One binary: its name, its Go package, and how to ask it for its version."""

    name: str
    module: Module
    package: str
    cold_build_seconds: int
    """Measured with empty caches on 2 cores, in the order of :data:`TOOLS`; for the progress."""
    version_arguments: tuple[str, ...] = ("--version",)

    def fits(self, printed: str) -> bool:
        """Whether what a binary prints of its version is the minor version we pin."""
        found = re.search(r"\bv?(\d+\.\d+)(?:\.\d+)?\b", printed)  # Helm tells no patch
        return found is not None and found[1] == self.module.minor


def _kubernetes(name: str, cold_build_seconds: int) -> Tool:
    return Tool(name, KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", cold_build_seconds)


KUBECTL = Tool("kubectl", KUBERNETES, "k8s.io/kubernetes/cmd/kubectl", 20, ("version", "--client"))
FAKE_KUBELET = Tool("kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok", 60)
TOOLS = (
    Tool("etcd", ETCD, "go.etcd.io/etcd/server/v3", 40),
    _kubernetes("kube-apiserver", 190),
    _kubernetes("kube-controller-manager", 60),
    _kubernetes("kube-scheduler", 5),
    KUBECTL,
    FAKE_KUBELET,
)

HELM = Tool("helm", HELM_MODULE, "helm.sh/helm/v4/cmd/helm", 150, ("version", "--short"))
KUBECONFORM = Tool(
    "kubeconform", KUBECONFORM_MODULE, "github.com/yannh/kubeconform/cmd/kubeconform", 15, ("-v",)
)
PROMTOOL = Tool("promtool", PROMETHEUS, "github.com/prometheus/prometheus/cmd/promtool", 200)
CHART_TOOLS = (HELM, KUBECONFORM, PROMTOOL)
"""What renders and checks the chart, its manifests and its alerts."""

KIND = Tool("kind", KIND_MODULE, "sigs.k8s.io/kind", 30, ("version",))
KIND_TOOLS = (KIND, HELM, KUBECTL)
"""What a cluster in containers is made and used with."""
TRAINER = Tool(
    "trainer-controller-manager",
    TRAINER_MODULE,
    "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
    240,
)
"""Kubeflow Trainer's controller, for a cluster in containers."""
