"""What ``--json`` prints, and the table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Protocol

from bench.autoscale.outcome import Outcome
from bench.autoscale.scene import Scene
from bench.autoscale.suite import NAMES, O1, ORACLES, Result

KEYS = (
    "attainment",
    "ttft_attainment",
    "itl_attainment",
    "replica_hours",
    "average_replicas",
    "direction_changes_per_hour",
    "seconds_to_recover",
)


def document(trace_name: str, results: Iterable[Result]) -> dict[str, Any]:
    """Of one scene; a policy that was not there is not in it."""
    found = {each.name: _figures(each.outcome) for each in _ordered(results)}
    return {
        "trace": trace_name,
        "policies": {name: each for name, each in found.items() if name not in ORACLES},
        "oracles": {name: each for name, each in found.items() if name in ORACLES},
    }


def cell(scene: Scene, peak_replicas: float, results: Iterable[Result]) -> dict[str, Any]:
    """One scene of a grid."""
    return {
        **document(scene.trace.name, results),
        "start_delay_seconds": scene.start_delay_seconds,
        "peak_replicas": peak_replicas,
        "routing": scene.routing.value,
    }


def text(scene: Scene, results: Sequence[Result]) -> str:
    """A table in Markdown."""
    targets, requests = scene.targets, scene.trace.requests
    o1 = next((each.outcome.replica_hours for each in results if each.name == O1), None)
    lines = [
        f"## {scene.trace.name}: {len(requests)} requests in {scene.trace.seconds / 3600:.2f} h",
        "",
        f"{scene.engine.name}; TTFT {targets.ttft_seconds:g} s and mean TPOT "
        f"{1e3 * targets.tpot_seconds:g} ms of each request; starts take "
        f"{scene.start_delay_seconds:g} s; router {scene.routing.value}",
        "",
        "| policy | setting | attainment % | TTFT % | TPOT % | replica-h | average | over O1 | "
        "changes/h | recovery s | p99 TTFT s | p99 TPOT ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_line(each, o1) for each in _ordered(results))])


def _ordered(results: Iterable[Result]) -> list[Result]:
    return sorted(results, key=lambda each: NAMES.index(each.name))


def _figures(outcome: Outcome) -> dict[str, float | None]:
    return {key: getattr(outcome, key) for key in KEYS}


def _line(each: Result, o1: float | None) -> str:
    found = each.outcome
    recovery = found.seconds_to_recover
    cells = (
        each.name,
        setting(each.setting),
        f"{100 * found.attainment:.2f}",
        f"{100 * found.ttft_attainment:.2f}",
        f"{100 * found.itl_attainment:.2f}",
        f"{found.replica_hours:.1f}",
        f"{found.average_replicas:.2f}",
        f"{found.replica_hours / o1:.2f}" if o1 else "",
        f"{found.direction_changes_per_hour:.1f}",
        "never" if recovery is None else f"{recovery:.0f}",
        f"{found.p99_ttft_seconds:.2f}",
        f"{1e3 * found.p99_tpot_seconds:.1f}",
    )
    return f"| {' | '.join(cells)} |"


class Attained(Protocol):
    """What became of one replay."""

    @property
    def attainment(self) -> float:
        """Share of requests that met both targets."""

    @property
    def replica_hours(self) -> float:
        """Paid for."""


def of_seeds(outcomes: Sequence[Attained]) -> tuple[str, str]:
    """Two cells of a table: the mean attainment in percent with the least, and replica-hours."""
    shares = [100 * each.attainment for each in outcomes]
    hours = fmean(each.replica_hours for each in outcomes)
    return f"{fmean(shares):.2f} ({min(shares):.2f})", f"{hours:.2f}"


def of_one(outcome: Attained) -> tuple[str, str]:
    """The same of a single replay."""
    return f"{100 * outcome.attainment:.2f}", f"{outcome.replica_hours:.2f}"


def setting(values: Mapping[str, float | str]) -> str:
    """Of a tuned policy, in one cell of a table."""
    return ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )
