"""Metadata as every kind has it, in the words of ``k8s.io/apimachinery``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from poolwise.api.validation.field_error import FieldError, Kind

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_SUBDOMAIN_LENGTH = 253
_LABEL_LENGTH = 63
_ANNOTATIONS_LENGTH = 256 * 1024

_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)


def metadata_errors(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with an object's name, namespace, labels, annotations and finalizers."""
    yield from _name_errors(metadata)
    if namespace := metadata.get("namespace"):
        for problem in _label_problems(namespace):
            yield FieldError("metadata.namespace", Kind.INVALID, problem, namespace)
    yield from _label_errors(metadata.get("labels") or {})
    yield from _annotation_errors(metadata.get("annotations") or {})
    for finalizer in metadata.get("finalizers") or ():
        for problem in _key_problems(finalizer or ""):
            yield FieldError("metadata.finalizers", Kind.INVALID, problem, finalizer)


def _name_errors(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    prefix, name = metadata.get("generateName"), metadata.get("name")
    if prefix:
        for problem in _subdomain_problems(re.sub("-$", "a", prefix)):
            yield FieldError("metadata.generateName", Kind.INVALID, problem, prefix)
    elif not name:
        detail = "name or generateName is required"
        yield FieldError("metadata.name", Kind.REQUIRED, detail)
    if name:
        for problem in _subdomain_problems(name):
            yield FieldError("metadata.name", Kind.INVALID, problem, name)


def _label_errors(labels: Mapping[str, Any]) -> Iterator[FieldError]:
    for key, value in labels.items():
        for problem in _key_problems(key):
            yield FieldError("metadata.labels", Kind.INVALID, problem, key)
        for problem in _value_problems(value or ""):
            yield FieldError("metadata.labels", Kind.INVALID, problem, value)


def _annotation_errors(annotations: Mapping[str, Any]) -> Iterator[FieldError]:
    for key in annotations:
        for problem in _key_problems(key.lower()):
            yield FieldError("metadata.annotations", Kind.INVALID, problem, key)
    length = sum(len(f"{key}{value}".encode()) for key, value in annotations.items())
    if length > _ANNOTATIONS_LENGTH:
        detail = f"may not be more than {_ANNOTATIONS_LENGTH} bytes"
        yield FieldError("metadata.annotations", Kind.TOO_LONG, detail)


def _subdomain_problems(name: str, unit: str = "characters") -> Iterator[str]:
    """``unit``: the server has this check twice, and its two copies count in different words."""
    if len(name) > _SUBDOMAIN_LENGTH:
        yield f"must be no more than {_SUBDOMAIN_LENGTH} {unit}"
    if not re.fullmatch(_SUBDOMAIN, name):
        yield (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
            " '-' or '.', and must start and end with an alphanumeric character"
            + _see(_SUBDOMAIN, "example.com")
        )


def _label_problems(name: str) -> Iterator[str]:
    if len(name) > _LABEL_LENGTH:
        yield f"must be no more than {_LABEL_LENGTH} characters"
    if re.fullmatch(_LABEL, name):
        return
    if re.fullmatch(_SUBDOMAIN, name):
        yield "must not contain dots"
    else:
        yield (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or"
            " '-', and must start and end with an alphanumeric character"
            + _see(_LABEL, "my-name", "123-abc")
        )


def _key_problems(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield (
            f"a valid label key {_CHARACTERS}{_see(_QUALIFIED, 'MyName', 'my.name', '123-abc')}"
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif prefix:
        yield from (f"prefix part {problem}" for problem in _subdomain_problems(prefix, "bytes"))
    yield from (f"name part {problem}" for problem in _name_part_problems(name))


def _name_part_problems(name: str) -> Iterator[str]:
    if not name:
        yield "must be non-empty"
    elif len(name) > _LABEL_LENGTH:
        yield f"must be no more than {_LABEL_LENGTH} bytes"
    if not re.fullmatch(_QUALIFIED, name):
        yield _CHARACTERS + _see(_QUALIFIED, "MyName", "my.name", "123-abc")


def _value_problems(value: str) -> Iterator[str]:
    if len(value) > _LABEL_LENGTH:
        yield f"must be no more than {_LABEL_LENGTH} bytes"
    if not re.fullmatch(_VALUE, value):
        characters = _CHARACTERS.replace("must", "must be an empty string or", 1)
        yield f"a valid label {characters}{_see(_VALUE, 'MyValue', 'my_value', '12345')}"


def _see(pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f" (e.g. {shown}regex used for validation is '{pattern}')"
