"""Text with a form: names of Kubernetes objects, labels, images, paths.

Each form allows the empty string, which counts as absent; where a name is required, its field
says so by ``min_length=1``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from poolwise.api.markers import Rule

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"


def _form(pattern: str, must: str) -> Rule:
    return Rule(f"self == '' || self.matches('^{pattern}$')", must)


DnsLabel = Annotated[
    str,
    Field(max_length=63),
    _form(_LABEL, "must be lower-case letters, digits and '-', starting and ending without '-'"),
]
"""A namespace, a volume."""

DnsName = Annotated[
    str,
    Field(max_length=253),
    _form(
        f"{_LABEL}([.]{_LABEL})*",
        "must be a name of lower-case letters, digits, '-' and '.', without a namespace",
    ),
]
"""The name of another object in the same namespace."""

LabelKey = Annotated[
    str,
    Field(max_length=317),
    _form(
        f"({_LABEL}([.]{_LABEL})*/)?{_QUALIFIED}",
        "must be a label key such as topology.kubernetes.io/zone",
    ),
]

LabelValue = Annotated[
    str,
    Field(max_length=63),
    _form(_QUALIFIED, "must be a label value: letters, digits, '-', '_' and '.'"),
]

Title = Annotated[
    str,
    Field(max_length=128),
    _form("[!-~]([ -~]*[!-~])?", "must be printable ASCII without leading or trailing spaces"),
]
"""The name of a model or a device, as its makers write it."""

Image = Annotated[
    str,
    Field(max_length=512),
    _form(
        "[a-zA-Z0-9]([-a-zA-Z0-9._:]*[a-zA-Z0-9])?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
        "(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[a-f0-9]{64})?",
        "must be an image such as ghcr.io/you/train:1.4, optionally with @sha256: and 64 digits",
    ),
]

AbsolutePath = Annotated[
    str,
    Field(max_length=1024),
    _form("/[^:]*", "must be an absolute path without ':'"),
]

RelativePath = Annotated[
    str,
    Field(max_length=1024),
    Rule(
        "!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",
        "must be a relative path without '..'",
    ),
]

EnvName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    _form("[-._a-zA-Z][-._a-zA-Z0-9]*", "must be letters, digits, '_', '-' and '.'"),
]

PortName = Annotated[
    str,
    Field(min_length=1, max_length=15),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.matches('[a-z]')",
        "must be lower-case letters, digits and '-', with at least one letter",
    ),
]

Text = Annotated[str, Field(max_length=32_768)]
"""Anything: an argument, the value of a variable."""
