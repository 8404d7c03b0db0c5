"""CPU, memory and other resources of one pod; accelerators are not asked for here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from poolwise.api.base import ApiModel
from poolwise.api.markers import INT_OR_STRING, Rule
from poolwise.api.quantity import QUANTITY_LENGTH

_PATTERN = "^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$"


@dataclass(frozen=True, slots=True)
class _AsQuantity:
    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            INT_OR_STRING: True,
            "maxLength": QUANTITY_LENGTH,
            "pattern": _PATTERN,
        }


QuantityText = Annotated[str, BeforeValidator(str), _AsQuantity()]
"""A quantity that Poolwise hands on to the pod as it was written."""

_ACCELERATORS = (
    "^(nvidia[.]com/(gpu[-a-z0-9.]*|mig-[-a-z0-9.]*)|amd[.]com/gpu[-a-z0-9.]*"
    "|gpu[.]intel[.]com/[-a-z0-9.]*|habana[.]ai/gaudi"
    "|google[.]com/tpu|aws[.]amazon[.]com/neuron[-a-z0-9.]*)$"
)
ResourceList = Annotated[
    dict[Annotated[str, Field(max_length=317)], QuantityText],
    Field(max_length=16),
    Rule(
        f"!self.exists(name, name.matches('{_ACCELERATORS}'))",
        "must not name %s: accelerators come from spec.accelerators",
        (f"self.filter(name, name.matches('{_ACCELERATORS}'))[0]",),
    ),
    Rule(
        "self.all(name, name.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
        "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",
        "must name resources such as cpu, memory, ephemeral-storage or rdma/hca",
    ),
]


class Resources(ApiModel):
    """What one pod asks for and may use at most."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.requests) || !has(self.limits)"
            " || self.requests.all(name, !(name in self.limits)"
            " || quantity(string(self.requests[name]))"
            ".compareTo(quantity(string(self.limits[name]))) <= 0)",
            "must not exceed limits",
            field=".requests",
        ),
    )

    requests: ResourceList = Field(default_factory=dict)
    """What the scheduler sets aside. Example: `{cpu: "16", memory: 128Gi}`."""
    limits: ResourceList = Field(default_factory=dict)
    """The most that the container may use. Example: `{memory: 256Gi}`."""
