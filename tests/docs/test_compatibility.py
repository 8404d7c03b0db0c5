"""docs/compatibility.md and the clouds' pages agree with code, charts and pinned tools."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from e2e.tools.catalog import HELM_MODULE, KIND_MODULE, KUBERNETES
from poolwise import tables
from poolwise.plan.nodes import labels
from poolwise.settings import Settings

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGE = (REPOSITORY / "docs" / "compatibility.md").read_text(encoding="utf-8")
CLOUDS = {"oci": "Oracle (OKE)", "coreweave": "CoreWeave", "lambda": "Lambda", "ibm": "IBM"}
NOT_SPELT_OUT = {
    "kubernetes.azure.com/accelerator",  # the page says that it names no model
    "nvidia.com/gpu.replicas",  # made of the resource's name
}


def test_the_floor_is_the_charts() -> None:
    for chart in ("poolwise", "poolwise-crds"):
        text = (REPOSITORY / "charts" / chart / "Chart.yaml").read_text(encoding="utf-8")
        [floor] = re.findall(r">=(\d+\.\d+)\.0-0", yaml.safe_load(text)["kubeVersion"])
        minors = sorted(re.findall(r"^\| (1\.\d+) \|", PAGE, re.MULTILINE))
        assert minors[0] == floor


@pytest.mark.parametrize("module", [KUBERNETES, HELM_MODULE, KIND_MODULE], ids=lambda m: m.folder)
def test_pinned_tools_are_told(module) -> None:
    assert module.version.removeprefix("v") in PAGE


def test_default_images_are_told() -> None:
    settings = Settings()
    images = (settings.vllm_image, settings.sglang_image, settings.tgi_image, settings.triton_image)
    for image in images:
        assert f"`{image}`" in PAGE


def test_the_tables_are_as_large_as_told() -> None:
    known = tables.load()
    sizes = {
        "accelerators": len(known.accelerators.rows),
        "CPUs": len(known.cpus.rows),
        "machine types": len(known.machine_types.rows),
        "models": len(known.models.rows),
    }
    for thing, size in sizes.items():
        assert re.search(rf"\b{size} {thing}\b", PAGE), f"{size} {thing}"


def test_machine_types_of_each_cloud_are_as_many_as_told() -> None:
    page = (REPOSITORY / "docs" / "cloud" / "others.md").read_text(encoding="utf-8")
    counted = Counter(row.cloud for row in tables.load().machine_types.rows)
    for cloud, name in CLOUDS.items():
        assert re.search(rf"^\| {re.escape(name)} \|.*\| {counted[cloud]} \|$", page, re.MULTILINE)


@pytest.mark.parametrize("page", ["gke", "eks", "aks", "bare-metal", "others"])
def test_labels_that_are_named_are_read(page: str) -> None:
    """Every whole label key in the table of what is read stands in the code that reads labels."""
    text = (REPOSITORY / "docs" / "cloud" / f"{page}.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    named = re.findall(r"`([a-z0-9.-]+\.[a-z]+/[\w.-]+)(?:=[\w.]+)?`", table)
    sources = "".join(
        path.read_text(encoding="utf-8") for path in Path(labels.__file__).parent.glob("*.py")
    )
    resources = tables.load().accelerators.resources
    unread = {key for key in named if key not in sources and key not in resources}
    assert unread <= NOT_SPELT_OUT
