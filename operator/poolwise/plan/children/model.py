"""Where a service's weights come from: a claim, Hugging Face, or an OCI image.

- ``pvc://CLAIM/PATH`` is mounted read-only.
- ``hf://ORGANISATION/MODEL[:REVISION]`` is downloaded by the engine; with ``modelCache`` it is kept
  on that claim, as is what the engine compiles.
- ``oci://REPOSITORY:TAG`` is mounted as an image volume: on by default in Kubernetes 1.35, final in
  1.36. An API server that does not know them refuses the pod, and the conditions say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from poolwise.api import InferenceServiceSpec
from poolwise.errors import InvalidInput
from poolwise.plan.children import pods
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.observed import Manifest

MODEL_PATH = "/mnt/models"
CACHE_PATH = "/mnt/model-cache"
HUB_ID = re.compile(r"(?P<id>\w[\w.-]*(/\w[\w.-]*)?)([:@](?P<revision>\w[\w./-]*))?", re.ASCII)
"""An id that cannot be taken for a flag or a path, and the revision that KServe writes after it."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What an engine is told of its model, and what its pod mounts for it."""

    reference: str | None
    """Path or id; None where an engine of the user's own brings its model along."""
    revision: str | None = None
    volumes: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()
    environment: tuple[Manifest, ...] = ()


def weights(spec: InferenceServiceSpec, record: PlacementRecord) -> Weights:
    """The weights of a service.

    :raises InvalidInput: for a ``uri`` that admission would refuse, or for none where the engine
        needs one and the model is no preset that is published on Hugging Face.
    """
    uri = spec.model.uri or (f"hf://{record.hub_id}" if record.hub_id else "")
    scheme, _, rest = uri.partition("://")
    match scheme:
        case "pvc":
            return _from_claim(spec, rest)
        case "hf" if match := HUB_ID.fullmatch(rest):
            return Weights(match["id"], match["revision"], *_cache(spec))
        case "oci" if rest:
            return _from_image(spec, rest)
        case "" if spec.engine.type == "custom":
            return Weights(None, None, *_cache(spec))
    engine = spec.engine.type
    told = (
        f"{uri!r} cannot be loaded by engine {engine}"
        if uri
        else f"is empty, and {engine} has no weights to load"
    )
    raise InvalidInput(
        "spec.model.uri",
        f"{told}, allowed are pvc://CLAIM/PATH, hf://ORGANISATION/MODEL[:REVISION] and "
        "oci://REPOSITORY:TAG (and none at all for a preset that is published on Hugging Face)",
    )


def _from_claim(spec: InferenceServiceSpec, rest: str) -> Weights:
    claim_name, _, path = rest.partition("/")
    volume, mount = pods.claim("model", claim_name, MODEL_PATH, read_only=True)
    reference = f"{MODEL_PATH}/{path}".rstrip("/")
    return _with_cache(spec, pods.literal(reference), volume, mount)


def _from_image(spec: InferenceServiceSpec, reference: str) -> Weights:
    name = f"{pods.VOLUME_PREFIX}model"
    volume = {"name": name, "image": {"reference": reference, "pullPolicy": "IfNotPresent"}}
    mount = {"name": name, "mountPath": MODEL_PATH, "readOnly": True}
    return _with_cache(spec, MODEL_PATH, volume, mount)


def _with_cache(
    spec: InferenceServiceSpec, reference: str, volume: Manifest, mount: Manifest
) -> Weights:
    volumes, mounts, environment = _cache(spec)
    return Weights(reference, None, (volume, *volumes), (mount, *mounts), environment)


def _cache(
    spec: InferenceServiceSpec,
) -> tuple[tuple[Manifest, ...], tuple[Manifest, ...], tuple[Manifest, ...]]:
    if spec.model_cache is None:
        return (), (), ()
    volume, mount = pods.claim("cache", spec.model_cache.claim_name, CACHE_PATH, read_only=False)
    environment = (
        {"name": "HF_HOME", "value": f"{CACHE_PATH}/huggingface"},
        {"name": "VLLM_CACHE_ROOT", "value": f"{CACHE_PATH}/vllm"},
    )
    return (volume,), (mount,), environment
