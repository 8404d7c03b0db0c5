"""What the API server would say of an object, without an API server.

Belongs here: the server's own steps, read off its source (v1.36) and compared with it by
tests/apiserver: strict decoding, defaulting, metadata, schema, list types, CEL. All of them work on
the generated CRDs, so that there is one source of what is allowed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from poolwise.api import GROUP, RESOURCES, VERSION
from poolwise.api.base import Resource
from poolwise.api.crd import validation_schema
from poolwise.api.validation.decoding import decoded, undecodable
from poolwise.api.validation.defaulting import apply_defaults, drop_nulls
from poolwise.api.validation.field_error import FieldError
from poolwise.api.validation.list_types import duplicates
from poolwise.api.validation.object_meta import metadata_errors
from poolwise.api.validation.rules import broken_rules
from poolwise.api.validation.scale import scale_errors
from poolwise.api.validation.schema_errors import schema_errors
from poolwise.api.validation.unknown_fields import unknown_fields

_API_VERSION = f"{GROUP}/{VERSION}"
_KINDS = {resource.__name__: resource for resource in RESOURCES}


def problems(document: Mapping[str, Any]) -> list[str]:
    """The sentences with which the API server would refuse to create the object; empty if none.

    As there, unknown fields are all that is said while there are any, and rules across fields are
    checked once the schema holds.
    """
    resource = _KINDS.get(str(document.get("kind")))
    if resource is None or document.get("apiVersion") != _API_VERSION:
        return [_no_match(document)]
    if reason := undecodable(document.get("metadata")):
        kind = resource.__name__
        return [f'{kind} in version "{VERSION}" cannot be handled as a {kind}: {reason}']
    schema = validation_schema(resource)
    if unknown := unknown_fields(document, schema):
        return [f'unknown field "{path}"' for path in unknown]
    return [str(error) for error in _errors(resource, defaulted(decoded(document)))]


def defaulted(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as the API server would store it: nulls dropped, defaults filled in."""
    resource = _KINDS[str(document.get("kind"))]
    stored = copy.deepcopy(dict(document))
    schema = validation_schema(resource)
    drop_nulls(stored, schema)
    apply_defaults(stored, schema)
    return stored


def _errors(resource: type[Resource], document: dict[str, Any]) -> list[FieldError]:
    document.pop("status", None)  # of a new object the server takes none
    schema = validation_schema(resource)
    errors = [
        *metadata_errors(document.get("metadata") or {}),
        *schema_errors(document, schema),
        *(scale_errors(document) if resource.is_scalable else ()),
        *duplicates(document, schema),
    ]
    if not any(error.is_blocking for error in errors):
        errors.extend(broken_rules(document, schema))
    return errors


def _no_match(document: Mapping[str, Any]) -> str:
    kind, version = document.get("kind"), document.get("apiVersion")
    if not kind:
        return "Object 'Kind' is missing"
    if not version:
        return "apiVersion not set"
    return f'no matches for kind "{kind}" in version "{version}"'
