"""AcceleratorPool: nodes that are alike, and what labels cannot tell of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poolwise.api.base import (
    AGE,
    READY_REASON,
    ApiModel,
    Column,
    Figures,
    OpenModel,
    Resource,
    Sentence,
    Word,
)
from poolwise.api.conditions import Conditions
from poolwise.api.markers import LIST_SET, Rule, list_map
from poolwise.api.names import DnsLabel, LabelKey, LabelValue, Title
from poolwise.api.placement import CapacityType
from poolwise.api.quantity import Duration, Quantity

Rate = Annotated[float, Quantity("1", "1P", "450G")]


class Price(ApiModel):
    """What one node costs."""

    per_node_hour: Annotated[float, Quantity("0", "1M", '"55.00"')]
    """Price of one node for one hour. Example: `"55.00"`."""
    currency: Annotated[
        str, Field(max_length=3), Rule("self.matches('^[A-Z]{3}$')", "must be three capitals")
    ] = "USD"
    """Its currency, ISO 4217. Example: `USD`."""


class InterconnectSpec(ApiModel):
    """Links, one way."""

    intra_node_bytes_per_second: Rate | None = None
    """Per accelerator, inside a node. Example: `450G`."""
    inter_node_bytes_per_second: Rate | None = None
    """Per node, all network cards together. Example: `400G`."""
    topology_keys: Annotated[
        tuple[Annotated[LabelKey, Field(min_length=1)], ...], Field(max_length=8), LIST_SET
    ] = ()
    """Node labels of the fabric's levels, nearest first. Example: `[rack-label, block-label]`."""


class Storage(ApiModel):
    """How fast nodes read."""

    read_bytes_per_second: Rate | None = None
    """Samples, per node. Example: `10G`."""
    model_load_bytes_per_second: Rate | None = None
    """Weights from their store into the accelerators, per node. Example: `5G`."""
    shared_read_bytes_per_second: Rate | None = None
    """Samples, all nodes together. Example: `100G`."""


class Toleration(ApiModel):
    """A taint that does not keep work away."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.operator != 'Exists' || !has(self.value) || self.value == ''",
            "must be empty when operator is Exists",
            field=".value",
        ),
    )

    key: Annotated[LabelKey, Field(min_length=1)]
    """Key of the taint. Example: `dedicated`."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Whether the value must match. Example: `Equal`."""
    value: LabelValue = ""
    """Value of the taint when operator is Equal. Example: `training`."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Effect of the taint; all when empty. Example: `NoSchedule`."""


class AcceleratorPoolSpec(ApiModel):
    """Written by people only; what is given wins over the labels of the nodes."""

    node_selector: Annotated[
        dict[LabelKey, LabelValue],
        Field(min_length=1, max_length=16),
        Rule(
            "self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
            "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",
            "must have label keys such as cloud.google.com/gke-nodepool",
        ),
    ]
    """Labels that all must match. Example: `{cloud.google.com/gke-nodepool: train}`."""
    accelerator: Title = ""
    """A name or alias of the shipped table, when labels cannot tell. Example: `H100-SXM5-80GB`."""
    price: Price | None = None
    """What one node costs; the shipped table's when absent. Example: `{perNodeHour: "55.00"}`."""
    capacity_type: CapacityType | None = None
    """Terms of purchase; from labels when absent. Example: `OnDemand`."""
    interconnect: InterconnectSpec = Field(default_factory=InterconnectSpec)
    """Links between accelerators. Example: `{interNodeBytesPerSecond: 400G}`."""
    storage: Storage = Field(default_factory=Storage)
    """How fast nodes read. Example: `{readBytesPerSecond: 10G}`."""
    node_startup: Annotated[float, Duration("1s", "24h", "4m")] | None = None
    """Time of a new node from request to Ready. Example: `4m`."""
    max_nodes: int | None = Field(None, ge=0, le=100_000)
    """Most nodes that the pool may grow to. Example: `16`."""
    allowed_namespaces: Annotated[
        tuple[Annotated[DnsLabel, Field(min_length=1)], ...], Field(max_length=256), LIST_SET
    ] = ()
    """Namespaces whose workloads may run here; all when empty. Example: `[research]`."""
    tolerate_taints: Annotated[tuple[Toleration, ...], Field(max_length=32)] = ()
    """Taints that do not keep work away, besides the accelerator's own.
    Example: `[{key: dedicated, value: training, effect: NoSchedule}]`."""


class PriceStatus(OpenModel):
    """What one node costs, and where that is known from."""

    per_node_hour: float | None = None
    """Price of one node for one hour. Example: `55.0`."""
    currency: Annotated[str, Field(max_length=3)] | None = None
    """Its currency, ISO 4217. Example: `USD`."""
    source: Sentence | None = None
    """`spec.price`, or the shipped table with its date. Example: `spec.price`."""


class IdleNode(ApiModel):
    """A node that can take work and whose accelerators nobody holds."""

    name: Word
    """Name of the node. Example: `train-7`."""
    since: Word
    """Since when, as far as Poolwise knows. Example: `"2026-11-24T12:00:00Z"`."""


class AcceleratorPoolStatus(ApiModel):
    """What the nodes are and have; written by Poolwise only."""

    observed_generation: int | None = Field(None, ge=0)
    """`metadata.generation` that this status is about. Example: `3`."""
    nodes: int | None = Field(None, ge=0)
    """Nodes that can take work. Example: `8`."""
    unusable_nodes: int | None = Field(None, ge=0)
    """Nodes that cannot: cordoned, not ready, being deleted. Example: `1`."""
    awaited_nodes: int | None = Field(None, ge=0)
    """Nodes to come that placed work waits for; absent without `maxNodes`. Example: `2`."""
    accelerator: Word | None = None
    """Name in the shipped table, or CPU. Example: `H100-SXM5-80GB`."""
    accelerators_per_node: int | None = Field(None, ge=0)
    """Accelerators of one node. Example: `8`."""
    capacity: int | None = Field(None, ge=0)
    """Accelerators of all usable nodes. Example: `64`."""
    free: int | None = Field(None, ge=0)
    """Accelerators that nothing holds. Example: `48`."""
    idle_node_count: int | None = Field(None, ge=0)
    """Nodes whose accelerators nobody holds. Example: `3`."""
    idle_cost_per_hour: float | None = None
    """What these nodes cost. Example: `165.0`."""
    idle_nodes: Annotated[tuple[IdleNode, ...], Field(max_length=64), list_map("name")] = ()
    """Which they are, the longest idle first, 64 at most.
    Example: `[{name: train-7, since: "2026-11-24T12:00:00Z"}]`."""
    ridge_points: Figures | None = None
    """FLOP per byte where compute and bandwidth balance, by format. Example: `{bf16: 295.0}`."""
    role: Literal["Interconnect", "MemoryBandwidth", "Balanced", "Cpu"] | None = None
    """What the pool is best at by its own numbers, beside the other pools.
    Example: `Interconnect`."""
    role_reason: Sentence | None = None
    """The numbers behind the role. Example: `487 GB/s of memory for $1.00/h, median 374`."""
    price: PriceStatus | None = None
    """What one node costs. Example: `{perNodeHour: 55.0, currency: USD}`."""
    discovered: Annotated[dict[str, object], Field(max_length=64)] | None = None
    """What labels said. Example: `{machineType: a3-highgpu-8g}`."""
    conditions: Conditions = ()
    """What is so and why. Example: `[]`."""


class AcceleratorPool(Resource):
    """Nodes that are alike. Poolwise never writes the spec of a pool that a person made."""

    short_name: ClassVar[str] = "apool"
    is_namespaced: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Accelerator", ".status.accelerator"),
        Column("Nodes", ".status.nodes", "integer"),
        Column("Free", ".status.free", "integer"),
        Column("Role", ".status.role"),
        *(READY_REASON, AGE),
        Column("Idle nodes", ".status.idleNodeCount", "integer", is_wide=True),
        Column("Idle cost per hour", ".status.idleCostPerHour", "number", is_wide=True),
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.metadata.name.size() <= 63",
            "name must be at most 63 characters, since nodes and pods carry it as a label, has %d",
            ("self.metadata.name.size()",),
            ".metadata",
        ),
    )

    spec: AcceleratorPoolSpec
    """Which nodes, and what labels cannot tell of them."""
    status: AcceleratorPoolStatus | None = None
    """What the nodes are and have; written by Poolwise only."""
