"""The plan as a table on a terminal; the input is what ``-o json`` rounds, so that a row says what
its reason says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from poolwise.plan.conditions import Reason
from poolwise.plan.records.meter import JOULES_PER_KILOWATT_HOUR
from poolwise.plan.status.further import FIELD
from poolwise.plan.wording import duration, money, plural, three_digits

WHY_COLUMNS = 56
"""Where a terminal has less room than that, reasons go below the table instead of into it."""

ESTIMATED = "Estimated"
"""End of the types of conditions that are True where something had to be assumed."""

_TAILS = (("TTFT", "ttftSeconds"), ("ITL", "itlSeconds"), ("TPOT", "tpotSeconds"))

Row = Mapping[str, Any]


def show(report: Mapping[str, Any]) -> None:
    """Print the workloads, then the pools they chose from."""
    show_workloads(report["workloads"])
    console = _console()
    console.print()
    _print(console, pools(report["pools"]))
    for row in report["pools"]:
        for message in notes(row):
            console.print(f"{row['name']}: {message}", markup=False, soft_wrap=True)


def show_workloads(rows: Sequence[Row]) -> None:
    """One line a workload: where, how fast, how much; and why not elsewhere."""
    console = _console()
    wide = workloads(rows, with_reasons=True)
    if not console.is_terminal or _columns(console, wide) <= console.width:
        _print(console, wide)
        return
    _print(console, workloads(rows, with_reasons=False))
    for row in rows:
        console.print(f"[bold]{escape(row['name'])}[/bold]: {escape(why(row))}")


def workloads(rows: Sequence[Row], *, with_reasons: bool) -> Table:
    """The workloads as a table."""
    table = _table(
        *("WORKLOAD", "BOTTLENECK", "POOL", "SHAPE", "PREDICTED", "COST", "ENERGY", "BASIS")
    )
    if with_reasons:
        table.add_column("WHY NOT THE NEXT BEST", width=WHY_COLUMNS)
    for row in rows:
        reasons = [escape(why(row))] if with_reasons else []
        table.add_row(
            escape(row["name"]),
            row.get("bottleneck", "-"),
            escape(_where(row)),
            escape(shape(row)),
            predicted(row),
            f"{money(row['costPerHour'], row['currency'])}/h" if "costPerHour" in row else "-",
            energy(row),
            basis(row),
            *reasons,
        )
    return table


def pools(rows: Sequence[Row]) -> Table:
    """One line a pool."""
    table = _table("POOL", "ACCELERATOR", "NODES", "FREE", "ROLE", "NODE PRICE")
    for row in rows:
        price = row.get("pricePerNodeHour")
        table.add_row(
            escape(row["name"]),
            escape(row.get("accelerator") or "unknown"),
            str(row["nodes"]),
            str(row.get("free", "-")),
            row.get("role") or "-",
            f"{money(price, row.get('currency', 'USD'))}/h" if price is not None else "-",
        )
    return table


def notes(row: Row) -> list[str]:
    """What is amiss with a pool or only estimated, each once: one condition may say what another
    adds a remedy to."""
    amiss = dict.fromkeys(
        each["message"]
        for each in row.get("conditions", ())
        if each["status"] == "False" or each["type"].endswith(ESTIMATED)
    )
    return [
        message
        for message in amiss
        if not any(other != message and other.startswith(message) for other in amiss)
    ]


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, no_wrap=True)
    return table


def _print(console: Console, table: Table) -> None:
    """Whole, whatever the width of the window or the pipe."""
    _console(max(console.width, _columns(console, table))).print(table)


def _console(width: int | None = None) -> Console:
    """Without rich's own colours for figures, which would fall inside the names of pools."""
    return Console(width=width, highlight=False)


def _columns(console: Console, table: Table) -> int:
    roomy = console.options.update(width=1000)
    return Measurement.get(console, roomy, table).maximum


def _where(row: Row) -> str:
    if row["placed"]:
        return str(row["pool"])
    if row["reasonCode"] == Reason.PLAN_ONLY:
        return f"would be {row['pool']}"
    return "waits" if any(each.get("waits") for each in row["candidates"]) else "none"


def shape(row: Row) -> str:
    """``64xH100-SXM5-80GB dp4 tp8 pp2`` or ``3 x 1xL4 tp2``, as the status sums it up."""
    summary: Mapping[str, str] = row.get("summary", {})
    parts = [summary.get("accelerators", ""), summary.get("shape", "")]
    shown = " ".join(part for part in parts if part) or "-"
    own = f"{row['replicas']} x {shown}" if "replicas" in row else shown
    further = (f" + {shape(each)} in {each['pool']}" for each in row.get(FIELD, ()))
    return own + "".join(further)


def predicted(row: Row) -> str:
    """The step time of training; the tails of a service."""
    figures: Mapping[str, float] = row.get("predicted", {})
    if "stepSeconds" in figures:
        return f"{duration(figures['stepSeconds'])} per step"
    if "itlSeconds" in figures:
        told = ((name, figures[key]) for name, key in _TAILS if key in figures)
        return ", ".join(f"{name} {duration(seconds)}" for name, seconds in told)
    return f"E2E {duration(figures['e2eSeconds'])}" if "e2eSeconds" in figures else "-"


def energy(row: Row) -> str:
    """Of the accelerators: ``8,611 kWh`` of a run, ``1.53 kW`` of a service."""
    if "energyJoules" not in row:
        return "-"
    kilowatt_hours = row["energyJoules"] / JOULES_PER_KILOWATT_HOUR
    return f"{three_digits(kilowatt_hours)} {'kWh' if 'totalSeconds' in row else 'kW'}"


def basis(row: Row) -> str:
    """Where the model's constants come from, and whether that is to be relied on."""
    doubt = "low confidence" if row.get("lowConfidence") else ""
    return ", ".join(filter(None, (row.get("provenance"), doubt))) or "-"


def why(row: Row) -> str:
    """Why the next best pool lost; why nothing is placed where nothing is."""
    losers = [each for each in row["candidates"] if not each.get("chosen")]
    if not (any(each.get("chosen") for each in row["candidates"]) and losers):
        return str(row["reason"])
    more = f" (and {plural(len(losers) - 1, 'pool')} more)" if len(losers) > 1 else ""
    return f"{losers[0]['pool']}: {losers[0]['reason']}{more}"
