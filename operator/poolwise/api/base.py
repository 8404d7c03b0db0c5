"""What every object of the API shares: names of fields, leniency, and cross-field rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from poolwise.api.markers import Rule

Sentence = Annotated[str, Field(max_length=4096)]
Word = Annotated[str, Field(max_length=253)]
Figures = Annotated[dict[Annotated[str, Field(max_length=63)], float], Field(max_length=64)]


class ApiModel(BaseModel):
    """Snake case in Python, camel case on the wire; the docstring of a field is its description.

    Unknown fields are ignored, so that an operator reads objects written for a newer version;
    null and the empty string count as absent, as they do for the API server's defaulting and
    for people.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    """Rules across fields, checked by the API server and offline."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None and value != ""}


class OpenModel(ApiModel):
    """An object that may carry more than is described here."""

    model_config = ConfigDict(extra="allow")


class ObjectMeta(ApiModel):
    """The part of Kubernetes' ObjectMeta that is read from a model; the rest is read from the
    object as it came."""

    creation_timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False
    """Whether only ``-o wide`` shows it."""


READY_REASON = Column("Status", '.status.conditions[?(@.type=="Ready")].reason')
AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Resource(ApiModel):
    """A custom resource: what is asked for in ``spec``, what came of it in ``status``."""

    short_name: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    is_namespaced: ClassVar[bool] = True
    is_scalable: ClassVar[bool] = False
    """Whether autoscalers may set ``spec.replicas`` through the scale subresource."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta
