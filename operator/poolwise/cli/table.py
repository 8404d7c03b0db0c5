"""The plan as a table on a terminal; the input is the JSON report, so the two cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

NARROWEST_COLUMNS = 110
"""A pipe or a small window still gets whole words."""

Row = Mapping[str, Any]


def show(report: Mapping[str, Any]) -> None:
    """Print the workloads, then the pools they chose from."""
    console = Console()
    if not console.is_terminal or console.width < NARROWEST_COLUMNS:
        console = Console(width=max(console.width, NARROWEST_COLUMNS))
    console.print(workloads(report["workloads"]))
    console.print(pools(report["pools"]))
    for row in report["pools"]:
        for condition in row.get("conditions", ()):
            if condition["status"] == "False":
                console.print(f"{row['name']}: {condition['message']}", markup=False)


def workloads(rows: Sequence[Row]) -> Table:
    """One line a workload: where, how fast, how much, and why not elsewhere."""
    table = _table("WORKLOAD", "BOTTLENECK", "POOL", "SHAPE", "PREDICTED", "COST", "WHY")
    for row in rows:
        table.add_row(
            escape(row["name"]),
            row.get("bottleneck", "-"),
            escape(row["pool"]) if row["placed"] else "waits" if _waits(row) else "none",
            escape(shape(row)),
            predicted(row),
            f"${row['costPerHour']:,.2f}/h" if "costPerHour" in row else "-",
            escape(why(row)),
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
            f"${price:,.2f}/h" if price is not None else "-",
        )
    return table


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, no_wrap=header != "WHY", overflow="fold")
    return table


def _waits(row: Row) -> bool:
    return any(candidate.get("waits") for candidate in row["candidates"])


def shape(row: Row) -> str:
    """``64xH100-SXM5-80GB dp4 tp8 pp2`` or ``3 x 1xL4``."""
    if "shape" not in row:
        return "-"
    layout: Mapping[str, Any] = row["shape"]
    if "cpuCores" in layout:
        return f"{row['replicas']} x {layout['cpuCores']:g} cores"
    devices = f"{row['count']}x{row['accelerator']}"
    if "replicas" in row:
        quantization = layout.get("quantization", "None")
        return f"{row['replicas']} x {devices}" + (
            "" if quantization == "None" else f" {quantization}"
        )
    sizes = (("dp", "data"), ("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"))
    return " ".join(
        [devices, *(f"{short}{layout[n]}" for short, n in sizes if layout.get(n, 1) > 1)]
    )


def predicted(row: Row) -> str:
    """The step time of training; the tails of a service and what they hold at."""
    figures: Mapping[str, float] = row.get("predicted", {})
    if "stepSeconds" in figures:
        return f"{seconds(figures['stepSeconds'])} per step"
    tails = (("TTFT", "ttftSeconds"), ("ITL", "itlSeconds"), ("E2E", "e2eSeconds"))
    shown = [f"{name} {seconds(figures[key])}" for name, key in tails if key in figures]
    return ", ".join(shown[:2] if "ttftSeconds" in figures else shown) or "-"


def seconds(value: float) -> str:
    """Three digits in the unit that reads best."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1, 1e3, "ms"), (120, 1, "s")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def why(row: Row) -> str:
    """Why the next best pool lost; why there is none, otherwise."""
    if not row["placed"]:
        return str(row["reason"])
    losers = [candidate for candidate in row["candidates"] if not candidate.get("chosen")]
    losers.sort(key=lambda candidate: not candidate["feasible"])
    if not losers:
        return str(row["reason"])
    return f"{losers[0]['pool']}: {losers[0]['reason']}"
