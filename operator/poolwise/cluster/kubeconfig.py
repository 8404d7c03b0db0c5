"""What is wrong with a kubeconfig, in our words: the client stumbles over it in Python's.

Several files are one, as for kubectl: of equal names the first file's counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

SCHEMES = ("https://", "http://")

Entries = dict[str, Mapping[str, Any]]


def problem(where: str, context: str | None) -> str | None:
    """One clause; None where all is there that ``context`` (None: the current one) names.

    :param where: paths as in ``KUBECONFIG``; those that are not there are passed over.
    """
    paths = _paths(where)
    if any(each.is_dir() for each in paths):
        return "is a directory"
    documents = []
    for path in (each for each in paths if each.exists()):
        document = _read(path)
        if isinstance(document, str):
            return document if len(paths) == 1 else f"{path} {document}"
        documents.append(document)
    return next(_problems(documents, context), None) if documents else "no such file"


def namespace(where: str, context: str | None) -> str | None:
    """Of ``context`` (None: the current one); None where it names none, or the file cannot be
    used."""
    files = (_read(path) for path in _paths(where) if path.is_file())
    documents = [each for each in files if isinstance(each, Mapping)]
    found = _named(documents, "contexts").get(_chosen(documents, context) or "", {})
    named = (found.get("context") or {}).get("namespace")
    return str(named) if named else None


def _paths(where: str) -> list[Path]:
    return [Path(each).expanduser() for each in where.split(os.pathsep) if each]


def _read(path: Path) -> Mapping[str, Any] | str:
    """What stands in a file, or why that is not a kubeconfig."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return "is not a kubeconfig: it is not text in UTF-8"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except yaml.YAMLError as error:
        return f"is not a kubeconfig: {_not_yaml(error)}"
    if document is None:
        return "is not a kubeconfig: it is empty"
    if not isinstance(document, Mapping):
        return "is not a kubeconfig: it is not a mapping with clusters, users and contexts"
    return document


def _not_yaml(error: yaml.YAMLError) -> str:
    told, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if not told or mark is None:
        return f"it is not YAML: {' '.join(str(error).split())}"
    return f"line {mark.line + 1}, column {mark.column + 1}: {told}"


def _problems(documents: list[Mapping[str, Any]], context: str | None) -> Iterator[str]:
    contexts = _named(documents, "contexts")
    chosen = _chosen(documents, context)
    known = f"it has {', '.join(map(str, contexts))}" if contexts else "it has none"
    if chosen is None:
        yield f"names no current-context, and no context was asked for; {known}"
    elif chosen not in contexts:
        yield f"has no context {chosen}; {known}"
    else:
        yield from _of_context(documents, f"context {chosen}", contexts[chosen].get("context"))


def _chosen(documents: Iterable[Mapping[str, Any]], context: str | None) -> str | None:
    current = (each["current-context"] for each in documents if each.get("current-context"))
    return context or next(current, None)


def _of_context(
    documents: list[Mapping[str, Any]], who: str, context: Mapping[str, Any] | None
) -> Iterator[str]:
    clusters, users = _named(documents, "clusters"), _named(documents, "users")
    cluster, user = ((context or {}).get(part) for part in ("cluster", "user"))
    if cluster not in clusters:
        yield _missing(who, "cluster", cluster, clusters)
        return
    server = str((clusters[cluster].get("cluster") or {}).get("server") or "")
    if not server.startswith(SCHEMES):
        told = f"server {server!r}" if server else "no server"
        yield f"cluster {cluster} has {told}; it must begin with {' or '.join(SCHEMES)}"
    elif user not in users and (user or server.startswith("https")):
        yield _missing(who, "user", user, users)
    elif user in users and not isinstance(users[user].get("user"), Mapping):
        yield f"user {user} has no credentials"


def _missing(who: str, kind: str, name: str | None, known: Iterable[str]) -> str:
    if not name:
        return f"{who} names no {kind}"
    there = ", ".join(map(str, known))
    told = f"its {kind}s are {there}" if there else f"it has no {kind}s"
    return f"{who} names {kind} {name}, and {told}"


def _named(documents: list[Mapping[str, Any]], kind: str) -> Entries:
    """Of equal names the first."""
    found: Entries = {}
    for document in documents:
        entries = document.get(kind)
        for each in entries if isinstance(entries, list) else ():
            if isinstance(each, Mapping) and "name" in each:
                found.setdefault(each["name"], each)
    return found
