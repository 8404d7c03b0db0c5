"""``poolwise plan``: the operator's decisions on files, without a cluster."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any

import typer

from poolwise import tables
from poolwise.api.validation import defaulted, problems
from poolwise.cli import table
from poolwise.cli.manifests import Document, gathered, identity, of_kind, read, told_apart
from poolwise.cli.nodes import read_nodes
from poolwise.cli.observations import elsewhere, read_corrections
from poolwise.cli.own_pods import unplanned, without_planned
from poolwise.cli.unranked import unranked
from poolwise.cli.unrunnable import unrunnable
from poolwise.cluster.clock import utc_now
from poolwise.environment import from_environment
from poolwise.model.calibration import shipped
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Rejection
from poolwise.plan.names import GROUP, LEADER_WORKER_SET
from poolwise.plan.observed import Decisions, Observed
from poolwise.plan.rounding import rounded
from poolwise.plan.status.report import report

KINDS = ("AcceleratorPool", "TrainingJob", "InferenceService")
PRIORITIES = "PriorityClass"


class Output(enum.StrEnum):
    """Forms of the answer."""

    TABLE = "table"
    JSON = "json"


class Api(enum.StrEnum):
    """APIs of others that change a plan; which versions they are served in does not."""

    LEADER_WORKER_SET = "LeaderWorkerSet"


Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file", "-f", help="Manifests: files, folders, or - for standard input; repeatable."
    ),
]
Pods = Annotated[
    str | None,
    typer.Option(
        help="Running pods, as `kubectl get pods -A -o yaml` prints them. What they hold is not"
        " free; pods of workloads that -f names are left out."
    ),
]
Measured = Annotated[
    str | None,
    typer.Option(
        "--observed",
        help="A file with a list of measured times over predicted ones:"
        " {model, phase, pool, ratio, at} each.",
    ),
]


def plan(  # noqa: PLR0913  # an option each
    nodes: Annotated[str, typer.Option(help="Nodes, as `kubectl get nodes -o yaml` prints them.")],
    files: Files = None,
    more_files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Manifests, with -f or without.")
    ] = None,
    pods: Pods = None,
    measured: Measured = None,
    api: Annotated[
        list[Api] | None, typer.Option(help="An optional API that the cluster serves; repeatable.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="table or json")] = Output.TABLE,
) -> None:
    """Say where each workload would run, why, and what it would cost.

    Reads files and touches no cluster. The exit status is 2 where a file or a document cannot be
    read or an object is refused (standard error says why, and the others are planned without it),
    else 0, also when a workload cannot be placed. Standard error warns, too, of a workload that
    could be placed and would not run (it has no image or no weights), and of a PriorityClass that
    no file has.
    """
    paths = [*(files or []), *(more_files or [])]
    if not paths:
        raise typer.BadParameter("no manifest is named", param_hint="'--file' / '-f'")
    given, unread = gathered(paths)
    ours = [document for document in given if _is_ours(document.content)]
    if not ours and not unread:
        _refuse([f"{', '.join(paths)}: no TrainingJob, InferenceService or AcceleratorPool found"])
    documents, refusals = _judged(ours)
    refusals = [*map(str, unread), *refusals]
    if not documents:
        _refuse(refusals)
    now, known = utc_now(), tables.load()
    stored = [_stored(document.content) for document in documents]
    observed = replace(_observed(given, stored, nodes, pods), apis=_served(api or ()))
    if measured:
        observed = replace(observed, corrections=read_corrections(measured, known, now))
    settings = from_environment(os.environ)
    answer = decide(observed, known, settings, shipped(known), now)
    told = unrunnable(documents, stored, answer, settings)
    ranks = unranked(documents, observed.priority_classes)
    unused = elsewhere(measured, observed.corrections, answer) if measured else ()
    for sentence in chain(told, ranks, unused, unplanned(observed.pods)):
        typer.echo(f"poolwise: {sentence}", err=True)
    shown = rounded(report(answer))  # as in a status, so that both tell the same digits
    if output is Output.JSON:
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        table.show(shown)
    _refuse([*refusals, *_rejections(documents, answer)])


def _served(apis: Iterable[Api]) -> dict[str, str]:
    groups = {Api.LEADER_WORKER_SET: LEADER_WORKER_SET}
    return {groups[api]: "" for api in apis}


def _refuse(sentences: list[str]) -> None:
    """Ends the program where there are any."""
    for sentence in sentences:
        typer.echo(f"poolwise: {sentence}", err=True)
    if sentences:
        raise typer.Exit(2)


def _judged(documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
    """Objects that the API server would take, and what it would say to the others; of two of one
    name it is the first."""
    found = [(document, problems(document.content)) for document in documents]
    first, again = told_apart(document for document, told in found if not told)
    refused = [(document, problem) for document, told in found for problem in told]
    return first, [f"{document.where}: {problem}" for document, problem in (*refused, *again)]


def _is_ours(content: Mapping[str, Any]) -> bool:
    """Objects of other API groups may stand in the same file, as they may for ``kubectl apply``."""
    version = content.get("apiVersion")
    return not isinstance(version, str) or GROUP in version or content.get("kind") in KINDS


def _observed(
    given: list[Document], stored: list[Mapping[str, Any]], nodes: str, pods: str | None
) -> Observed:
    by_kind = {kind: [item for item in stored if item["kind"] == kind] for kind in KINDS}
    found = read_nodes(nodes)
    if not found:
        _refuse_nothing(nodes, by_kind["AcceleratorPool"])
    workloads = [*by_kind["TrainingJob"], *by_kind["InferenceService"]]
    return Observed(
        nodes=found,
        pods=without_planned(of_kind(read([pods]), "Pod"), workloads) if pods else [],
        pools=by_kind["AcceleratorPool"],
        training_jobs=by_kind["TrainingJob"],
        inference_services=by_kind["InferenceService"],
        priority_classes=[
            document.content for document in given if document.content.get("kind") == PRIORITIES
        ],
        is_cluster=False,
    )


def _refuse_nothing(nodes: str, pools: list[Mapping[str, Any]]) -> None:
    """Without a node there is nothing to plan on but pools whose nodes are still to come."""
    sentence = f"{nodes} holds no Node"
    if not any(pool["spec"].get("maxNodes") for pool in pools):
        _refuse([f"{sentence}, and no AcceleratorPool with maxNodes is given"])
    typer.echo(f"poolwise: {sentence}", err=True)


def _stored(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object as the API server would store it: with defaults and a namespace."""
    document = dict(defaulted(content))
    if document["kind"] != "AcceleratorPool":
        document["metadata"] = {"namespace": "default", **document["metadata"]}
    return document


def _rejections(documents: Iterable[Document], decisions: Decisions) -> list[str]:
    """Specs that admission cannot judge alone, such as a preset that nobody knows."""
    rejected = {
        (str(outcome.key.kind), outcome.key.namespace, outcome.key.name): outcome.reason
        for outcome in decisions.outcomes.values()
        if isinstance(outcome, Rejection)
    }
    return [
        f"{document.where}: {reason}"
        for document in documents
        if (reason := rejected.get(identity(document.content)))
    ]
