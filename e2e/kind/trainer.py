"""Kubeflow Trainer's controller from its Go module: an image of it, and a manifest that runs it.

Nothing is downloaded but Go modules, so that this works where no registry of containers does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from e2e.image.engine import docker
from e2e.kind.command import run
from e2e.tools import cache
from e2e.tools.build import binaries
from e2e.tools.catalog import BUILD_ENVIRONMENT, KUBECTL, TRAINER
from e2e.tools.go import toolchain

IMAGE = "local/trainer:dev"
NAMESPACE = "kubeflow-system"
PARTS = ("base/crds", "base/manager", "base/rbac", "base/webhook")
"""Folders of the module's ``manifests``; its overlay would download JobSet beside them."""
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: {namespace}
resources:
- namespace.yaml
{parts}
images:
- name: ghcr.io/kubeflow/trainer/trainer-controller-manager
  newName: {name}
  newTag: {tag}
secretGenerator:
- name: kubeflow-trainer-webhook-cert
  options: {{disableNameSuffixHash: true}}
"""


def build() -> Path:
    """Make the image, and return the manifest's path; raises :class:`ProcessFailed`."""
    binary = binaries((TRAINER,))[TRAINER.name]
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        shutil.copy(binary, context / "manager")
        lines = ("FROM scratch", "COPY manager /manager", "USER 65532", 'ENTRYPOINT ["/manager"]')
        (context / "Dockerfile").write_text("\n".join(lines) + "\n")
        docker("build", "--quiet", "--tag", IMAGE, context)
    manifest = cache.root() / "tools" / TRAINER.module.key / "trainer.yaml"
    manifest.write_text(_manifest())
    return manifest


def _manifest() -> str:
    """The module's own manifests with our image."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder).resolve()
        name, _, tag = IMAGE.partition(":")
        parts = [os.path.relpath(_sources() / "manifests" / part, where) for part in PARTS]
        (where / "kustomization.yaml").write_text(
            KUSTOMIZATION.format(
                namespace=NAMESPACE,
                parts="\n".join(f"- {part}" for part in parts),
                name=name,
                tag=tag,
            )
        )
        (where / "namespace.yaml").write_text(
            f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"
        )
        return run([binaries((KUBECTL,))["kubectl"], "kustomize", where])


def _sources() -> Path:
    """Where Go keeps the module."""
    module = TRAINER.module
    words: list[str | Path] = [toolchain(module.path), "list", "-C", module.path, "-mod=readonly"]
    found = run([*words, "-m", "-f", "{{.Dir}}", module.pinned], environment=BUILD_ENVIRONMENT)
    return Path(found.strip())
