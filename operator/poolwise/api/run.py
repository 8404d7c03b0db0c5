"""The container: a narrow block, so that nothing of the node can be asked for.

No security context, host namespace, node name, toleration or scheduler: what is not here cannot
be smuggled in, and the placement stays Poolwise's.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from poolwise.api.base import ApiModel
from poolwise.api.environment import EnvSources, EnvVars
from poolwise.api.markers import INT_OR_STRING, VALIDATIONS, Rule, list_map
from poolwise.api.names import DnsName, Image, PortName, Text
from poolwise.api.resources import Resources
from poolwise.api.volumes import RequiredName, VolumeMounts, Volumes


class Port(ApiModel):
    """A port that the container listens on."""

    name: PortName
    """Name of the port; `metrics` is scraped. Example: `metrics`."""
    container_port: int = Field(ge=1, le=65_535)
    """Number of the port. Example: `9090`."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """Protocol of the port. Example: `TCP`."""


class PullSecret(ApiModel):
    """A secret with the credentials of a registry."""

    name: RequiredName
    """Name of the secret in the same namespace. Example: `registry`."""


_PROCESSES = Rule(
    "string(self) == 'Auto' || string(self).matches('^([1-9]|[1-9][0-9]|1[01][0-9]|12[0-8])$')",
    "must be Auto or an integer from 1 to 128",
)
ProcessesPerNode = Annotated[
    Literal["Auto"] | Annotated[int, Field(ge=1, le=128)],
    WithJsonSchema(
        {
            INT_OR_STRING: True,
            "maxLength": 4,
            VALIDATIONS: [_PROCESSES.as_validation()],
        }
    ),
]


_IS_STRAY = (
    "mount.name.matches('^[-a-z0-9]+$') && (!has(self.volumes)"
    " || !self.volumes.exists(volume, volume.name == mount.name))"
)


class Run(ApiModel):
    """What runs in each pod."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.volumeMounts) || !self.volumeMounts.exists(mount, {_IS_STRAY})",
            "must name a volume of volumes, %s is none",
            (f"self.volumeMounts.filter(mount, {_IS_STRAY})[0].name",),
            ".volumeMounts",
        ),
    )

    image: Image = ""
    """Image of the container; a run without `runtimeRef` needs one, a service takes its engine's.
    Example: `ghcr.io/you/train:1.4`."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled; Kubernetes' own rule when absent. Example: `IfNotPresent`."""
    command: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Entry point; the image's when empty. Example: `[torchrun]`."""
    args: Annotated[tuple[Text, ...], Field(max_length=256)] = ()
    """Arguments; `$(NAME)` stands for a variable.
    Example: `["--nnodes=$(PET_NNODES)", train.py]`."""
    env: EnvVars = ()
    """Variables. Example: `[{name: NCCL_DEBUG, value: INFO}]`."""
    env_from: EnvSources = ()
    """Config maps and secrets whose keys become variables.
    Example: `[{secretRef: {name: wandb}}]`."""
    resources: Resources = Field(default_factory=Resources)
    """CPU, memory and other resources of one pod; accelerators come from `spec.accelerators`.
    Example: `{requests: {cpu: "16", memory: 128Gi}}`."""
    volumes: Volumes = ()
    """Volumes of the pod.
    Example: `[{name: data, persistentVolumeClaim: {claimName: imagenet}}]`."""
    volume_mounts: VolumeMounts = ()
    """Where the volumes appear. Example: `[]`."""
    ports: Annotated[tuple[Port, ...], Field(max_length=16), list_map("name")] = ()
    """Ports that the container listens on. Example: `[{name: metrics, containerPort: 9090}]`."""
    service_account_name: DnsName = ""
    """ServiceAccount of the pods; the namespace's default when empty. Example: `trainer`."""
    image_pull_secrets: Annotated[
        tuple[PullSecret, ...], Field(max_length=8), list_map("name")
    ] = ()
    """Secrets with the credentials of registries. Example: `[{name: registry}]`."""
    processes_per_node: ProcessesPerNode = "Auto"
    """Processes that the entry point starts in each pod: Auto is one per accelerator.
    Example: `Auto`."""

    def as_manifest(self, field: str) -> Any:
        """One field of the block as it goes into a pod: camel case, without defaults."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude_defaults=True, include={field})
        return next(iter(dumped.values()), None)
