"""Kubernetes objects from files, as ``kubectl apply -f`` finds them there."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from poolwise.cli import yaml_documents
from poolwise.errors import InvalidInput

STANDARD_INPUT = "-"
SUFFIXES = (".yaml", ".yml", ".json")
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}


@dataclass(frozen=True, slots=True)
class Document:
    """One object and where it was found."""

    path: str
    index: int
    """Counted from 1."""
    items: tuple[int, ...]
    """Its position in a List, also counted from 1, and in each List around that one before it."""
    content: Mapping[str, Any]

    @property
    def where(self) -> str:
        """File, document and object, for the front of a sentence."""
        position = _position(self.path, self.index, self.items)
        kind, name = self.content.get("kind"), _metadata(self.content).get("name")
        return f"{position} ({kind}/{name})" if kind and name else position


def read(paths: Iterable[str]) -> Iterator[Document]:
    """All objects in order, Lists taken apart; a folder gives its own files, ``-`` standard input.

    Raises :class:`InvalidInput` for a file that cannot be read or parsed, naming line and column.
    """
    for found in _found(paths):
        if isinstance(found, InvalidInput):
            raise found
        yield found


def gathered(paths: Iterable[str]) -> tuple[list[Document], list[InvalidInput]]:
    """All objects that can be read, in order, and what is wrong with the rest.

    As for ``kubectl apply``, a file that cannot be parsed ends there: its documents before that,
    and the other files, are as good as without it.
    """
    found = list(_found(paths))
    return (
        [each for each in found if isinstance(each, Document)],
        [each for each in found if isinstance(each, InvalidInput)],
    )


def _found(paths: Iterable[str]) -> Iterator[Document | InvalidInput]:
    for path in paths:
        try:
            for file in _files(path):
                yield from _objects(file)
        except InvalidInput as error:
            yield error


def _files(path: str) -> list[str]:
    """As ``kubectl apply -f`` takes a folder: its manifests by name, no folders below."""
    if path == STANDARD_INPUT or not Path(path).is_dir():
        return [path]
    found = sorted(str(file) for file in Path(path).iterdir() if file.suffix in SUFFIXES)
    if not found:
        raise InvalidInput(path, f"holds no file named *{', *'.join(SUFFIXES)}")
    return found


def _text(path: str) -> str:
    try:
        is_given = path == STANDARD_INPUT
        content = sys.stdin.buffer.read() if is_given else Path(path).read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise InvalidInput(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(path, f"is not UTF-8 text: byte {error.start} {error.reason}") from error


def _objects(path: str) -> Iterator[Document | InvalidInput]:
    try:
        for index, content in enumerate(parsed(path), start=1):
            if content is not None:
                yield from _expanded(path, index, (), content)
    except InvalidInput as error:
        yield error


def parsed(path: str) -> Iterator[Any]:
    """The YAML documents of one file, whatever they hold.

    Raises :class:`InvalidInput` for one that cannot be read or parsed, naming line and column.
    """
    documents = yaml_documents.documents(_text(path))
    for index in itertools.count(1):
        try:
            content = next(documents)
        except StopIteration:
            return
        except (yaml.YAMLError, ValueError) as error:
            raise _unparsable(f"{path}: document {index}", error) from error
        yield content


def named(value: object) -> str:
    """What a file holds in place of what it should, in the words of YAML."""
    return next(
        (name for kind, name in _KINDS.items() if isinstance(value, kind)), f"{value!r:.64}"
    )


def _no_object(content: object) -> str:
    return f"is {named(content)}, expected an object"


def _unparsable(where: str, error: Exception) -> InvalidInput:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        where += f", line {mark.line + 1}, column {mark.column + 1}"
    told = " ".join(str(error).split())
    return InvalidInput(where, getattr(error, "problem", None) or f"is not YAML: {told}")


def _expanded(
    path: str, index: int, items: tuple[int, ...], content: object
) -> Iterator[Document | InvalidInput]:
    """The object, or those of a List; kubectl takes apart Lists inside of Lists, too."""
    where = _position(path, index, items)
    if not isinstance(content, dict):
        yield InvalidInput(where, _no_object(content))
    elif not str(content.get("kind", "")).endswith("List") or "items" not in content:
        yield Document(path, index, items, content)
    elif not isinstance(inside := content["items"] or [], list):
        yield InvalidInput(where, f"items is {named(inside)}, expected a list")
    else:
        for number, item in enumerate(inside, start=1):
            yield from _expanded(path, index, (*items, number), item)


def _position(path: str, index: int, items: tuple[int, ...]) -> str:
    """Items of a List inside of a List as ``2.1``."""
    position = f"{path}: document {index}"
    return f"{position}, item {'.'.join(map(str, items))}" if items else position


def of_kind(documents: Iterable[Document], kind: str) -> list[Mapping[str, Any]]:
    """The objects, each of which must be a ``kind`` with a name of its own."""
    first, again = told_apart(_checked(document, kind) for document in documents)
    for document, problem in again:
        raise InvalidInput(document.where, problem)
    return [document.content for document in first]


def _checked(document: Document, kind: str) -> Document:
    found = document.content.get("kind")
    if found != kind:
        raise InvalidInput(document.where, f'kind is "{found}", expected {kind}')
    if not isinstance(_metadata(document.content).get("name"), str):
        raise InvalidInput(document.where, "metadata.name is missing")
    return document


def told_apart(
    documents: Iterable[Document],
) -> tuple[list[Document], list[tuple[Document, str]]]:
    """The first of each kind, namespace and name, and the others with what is wrong with them."""
    first: dict[tuple[str, str, str], Document] = {}
    again = []
    for document in documents:
        earlier = first.setdefault(identity(document.content), document)
        if earlier is not document:
            again.append((document, f"given before in {earlier.where}"))
    return list(first.values()), again


def identity(content: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, namespace (``default`` where none is given) and name, as text."""
    metadata = _metadata(content)
    namespace = metadata.get("namespace") or "default"
    return str(content.get("kind")), str(namespace), str(metadata.get("name"))


def _metadata(content: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
