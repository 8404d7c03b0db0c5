"""Volumes of a run: claims, config maps, secrets and scratch space; nothing of the node."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule, exactly_one, list_map
from poolwise.api.names import AbsolutePath, DnsLabel, DnsName, RelativePath
from poolwise.api.resources import QuantityText

RequiredName = Annotated[DnsName, Field(min_length=1)]
Key = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Rule("self.matches('^[-._a-zA-Z0-9]+$')", "must be letters, digits, '-', '_' and '.'"),
]


class KeyToPath(ApiModel):
    """One key of a config map or secret, as a file."""

    key: Key
    """Key to project. Example: `train.yaml`."""
    path: Annotated[RelativePath, Field(min_length=1)]
    """File below the mount. Example: `conf/train.yaml`."""
    mode: int | None = Field(None, ge=0, le=511)
    """Permission bits of the file, as a decimal number. Example: `288`."""


Items = Annotated[tuple[KeyToPath, ...], Field(max_length=64)]
DefaultMode = Annotated[int, Field(ge=0, le=511)]


class ClaimVolume(ApiModel):
    """A PersistentVolumeClaim of the same namespace."""

    claim_name: RequiredName
    """Name of the claim. Example: `dataset`."""
    read_only: bool | None = None
    """Whether pods may only read it. Example: `true`."""


class ConfigMapVolume(ApiModel):
    """A ConfigMap of the same namespace."""

    name: RequiredName
    """Name of the config map. Example: `train-config`."""
    items: Items = ()
    """Keys to project; all when empty. Example: `[{key: train.yaml, path: train.yaml}]`."""
    default_mode: DefaultMode | None = None
    """Permission bits of the files, as a decimal number. Example: `420`."""
    optional: bool | None = None
    """Whether pods may start without it. Example: `false`."""


class SecretVolume(ApiModel):
    """A Secret of the same namespace; Poolwise itself never reads it."""

    secret_name: RequiredName
    """Name of the secret. Example: `wandb`."""
    items: Items = ()
    """Keys to project; all when empty. Example: `[{key: token, path: token}]`."""
    default_mode: DefaultMode | None = None
    """Permission bits of the files, as a decimal number. Example: `288`."""
    optional: bool | None = None
    """Whether pods may start without it. Example: `false`."""


class EmptyDirVolume(ApiModel):
    """Scratch space that lives as long as the pod."""

    medium: Literal["", "Memory"] = ""
    """Memory for a RAM disk (counts against the memory limit). Example: `Memory`."""
    size_limit: QuantityText | None = None
    """Most that it may hold. Example: `64Gi`."""


class Volume(ApiModel):
    """A name and exactly one source."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one("persistentVolumeClaim", "configMap", "secret", "emptyDir"),
    )

    name: Annotated[
        DnsLabel,
        Field(min_length=1),
        Rule("!self.startsWith('poolwise-')", "must not start with poolwise-, which Poolwise adds"),
    ]
    """Name that mounts refer to. Example: `dataset`."""
    persistent_volume_claim: ClaimVolume | None = None
    """A claim of the same namespace. Example: `{claimName: dataset, readOnly: true}`."""
    config_map: ConfigMapVolume | None = None
    """A config map of the same namespace. Example: `{name: train-config}`."""
    secret: SecretVolume | None = None
    """A secret of the same namespace. Example: `{secretName: wandb}`."""
    empty_dir: EmptyDirVolume | None = None
    """Scratch space. Example: `{sizeLimit: 64Gi}`."""


class VolumeMount(ApiModel):
    """Where a volume appears in the container."""

    name: Annotated[DnsLabel, Field(min_length=1)]
    """A name in `volumes`. Example: `dataset`."""
    mount_path: Annotated[AbsolutePath, Field(min_length=1)]
    """Path in the container. Example: `/data`."""
    sub_path: RelativePath = ""
    """Path in the volume; its root when empty. Example: `imagenet`."""
    read_only: bool | None = None
    """Whether the container may only read it. Example: `true`."""


Volumes = Annotated[tuple[Volume, ...], Field(max_length=32), list_map("name")]
VolumeMounts = Annotated[tuple[VolumeMount, ...], Field(max_length=32), list_map("mountPath")]
