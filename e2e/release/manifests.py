"""Plain manifests for those who do not use Helm: what the chart renders, for one image."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Any

import yaml

from e2e.release.errors import NotReleasable
from e2e.release.image import Image
from e2e.release.versions import ROOT
from e2e.tools.build import binaries
from e2e.tools.catalog import HELM

Manifest = dict[str, Any]

NAMESPACE = "poolwise-system"
HELMS_OWN_LABELS = {"helm.sh/chart": None, "app.kubernetes.io/managed-by": "Helm"}
"""Labels, and the value that is meant (None: any), by which Helm tells what it manages."""


def crds() -> str:
    """The resources alone, to be applied before an upgrade."""
    files = sorted((ROOT / "crds").glob("*.yaml"))
    return _joined(yaml.safe_load(path.read_text("utf-8")) for path in files)


def install(image: Image) -> str:
    """Everything in one file that applies in its order: namespace, resources, rights, operator."""
    documents = [document for document in yaml.safe_load_all(_rendered(image)) if document]
    for document in documents:
        _without_helm(document)
    return _joined([_namespace(), *sorted(documents, key=_is_no_crd)])


def _rendered(image: Image) -> str:
    helm = binaries((HELM,))["helm"]
    values: Manifest = {"image": {"repository": image.repository, "digest": image.digest}}
    values["crds"] = {"keep": False}  # an annotation for Helm
    chart = ["template", "poolwise", str(ROOT / "charts/poolwise"), f"--namespace={NAMESPACE}"]
    command = [str(helm), *chart, "--skip-tests", "--values=-"]
    told = subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise NotReleasable(f"helm template charts/poolwise: {told.stderr.strip()}")
    return told.stdout


def _is_no_crd(document: Manifest) -> bool:
    return bool(document["kind"] != "CustomResourceDefinition")


def _namespace() -> Manifest:
    """The operator's namespace, which admits nothing less strict than the operator itself."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _without_helm(document: Manifest) -> None:
    template = document.get("spec", {}).get("template", {})
    for metadata in (document["metadata"], template.get("metadata", {})):
        labels = metadata.get("labels") or {}
        for label, meant in HELMS_OWN_LABELS.items():
            if label in labels and meant in (None, labels[label]):
                del labels[label]


def _joined(documents: Iterable[Manifest]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True, width=120)
