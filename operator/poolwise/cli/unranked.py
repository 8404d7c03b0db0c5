"""Workloads of files whose PriorityClass no file has: what their order would be is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from poolwise.cli.manifests import Document
from poolwise.plan.reading import mapping
from poolwise.plan.requests.reading import priority_classes
from poolwise.plan.requests.request import Priority


def unranked(documents: Iterable[Document], classes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each workload that is planned with another priority than it asks for."""
    known = priority_classes(classes)
    default = known.get("", Priority()).value
    for document in documents:
        name = mapping(document.content, "spec").get("priorityClassName")
        if name and name not in known:
            yield (
                f"{document.where}: planned with priority {default}: spec.priorityClassName is "
                f"{name}, and no file has that PriorityClass"
            )
