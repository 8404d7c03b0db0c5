"""Environment variables of a run."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule, exactly_one, list_map
from poolwise.api.names import EnvName, Text
from poolwise.api.volumes import Key, RequiredName


class KeySelector(ApiModel):
    """One key of a config map or secret of the same namespace."""

    name: RequiredName
    """Name of the object. Example: `wandb`."""
    key: Key
    """Key within it. Example: `token`."""
    optional: bool | None = None
    """Whether pods may start without it. Example: `true`."""


class FieldSelector(ApiModel):
    """A field of the pod."""

    field_path: Annotated[
        str,
        Field(min_length=1, max_length=384),
        Rule(
            "self.matches('^(metadata[.](name|namespace|uid|(labels|annotations)\\\\[.*\\\\])"
            "|spec[.](nodeName|serviceAccountName)|status[.](hostIP|hostIPs|podIP|podIPs))$')",
            "must be a field of the pod such as metadata.name or status.podIP",
        ),
    ]
    """Path of the field. Example: `status.podIP`."""


class ValueSource(ApiModel):
    """Exactly one source."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one("configMapKeyRef", "secretKeyRef", "fieldRef"),
    )

    config_map_key_ref: KeySelector | None = None
    """A key of a config map. Example: `{name: train-config, key: epochs}`."""
    secret_key_ref: KeySelector | None = None
    """A key of a secret. Example: `{name: wandb, key: token}`."""
    field_ref: FieldSelector | None = None
    """A field of the pod. Example: `{fieldPath: status.podIP}`."""


class EnvVar(ApiModel):
    """One variable."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.valueFrom) || !has(self.value) || self.value == ''",
            "must not have both value and valueFrom",
        ),
    )

    name: EnvName
    """Name of the variable. Example: `NCCL_DEBUG`."""
    value: Text = ""
    """Its value; `$(NAME)` stands for a variable defined before. Example: `INFO`."""
    value_from: ValueSource | None = None
    """Where its value comes from. Example: `{secretKeyRef: {name: wandb, key: token}}`."""


class ObjectReference(ApiModel):
    """A config map or secret of the same namespace."""

    name: RequiredName
    """Name of the object. Example: `wandb`."""
    optional: bool | None = None
    """Whether pods may start without it. Example: `true`."""


class EnvSource(ApiModel):
    """All keys of one config map or secret, as variables."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("configMapRef", "secretRef"),)

    prefix: Annotated[str, Field(max_length=128)] = ""
    """Put before each name. Example: `WANDB_`."""
    config_map_ref: ObjectReference | None = None
    """A config map. Example: `{name: train-config}`."""
    secret_ref: ObjectReference | None = None
    """A secret. Example: `{name: wandb}`."""


EnvVars = Annotated[tuple[EnvVar, ...], Field(max_length=128), list_map("name")]
EnvSources = Annotated[tuple[EnvSource, ...], Field(max_length=16)]
