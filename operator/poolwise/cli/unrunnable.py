"""What a plan from files cannot be run as: the operator makes the children, and finds out then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from poolwise.cli.manifests import Document, identity
from poolwise.errors import InvalidInput
from poolwise.plan.children.manifests import check, children
from poolwise.plan.decision import Plan, chosen_pool
from poolwise.plan.observed import Decisions
from poolwise.plan.records.runtimes import Served
from poolwise.settings import Settings


def unrunnable(
    documents: Iterable[Document],
    stored: Iterable[Mapping[str, Any]],
    decisions: Decisions,
    settings: Settings,
) -> Iterator[str]:
    """A sentence for each workload that has a place, and whose pods the operator would not make.

    :param stored: the documents' objects, as the API server would store them.
    """
    plans = {
        (str(key.kind), key.namespace, key.name): outcome
        for key, outcome in decisions.outcomes.items()
        if isinstance(outcome, Plan) and outcome.placed
    }
    served = Served(decisions.apis, decisions.training_runtimes)
    for document, resource in zip(documents, stored, strict=True):
        plan = plans.get(identity(document.content))
        pool = chosen_pool(plan, decisions.pools_by_name) if plan else None
        if plan is None or pool is None:
            continue
        known = {**resource, "metadata": {"uid": "", **resource["metadata"]}}
        try:
            check(known)
            children(known, plan, pool, settings, served, decisions.pools_by_name)
        except InvalidInput as error:
            yield f"{document.where}: planned, but would not run: {error}"
