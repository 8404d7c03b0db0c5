"""``python -m bench.serving_memory --data DIR``: does memory hold the services that ran?

A service that is said not to start is a false alarm: it ran. It is judged as the planner judges: at
the upper end of what it may need, with the chunk of prompts that every engine may be told, as many
sequences as were in flight, and room for one request of the row's lengths. A row does not say what
share of the device the engine was told to take; one that the default is too little for may have
been told more, so that is tried next.
"""

from __future__ import annotations

import argparse
import enum
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import tables as measured_tables
from bench.programs import ends_on_bad_input
from bench.serving_runs import BATCH_LIMIT, Run, found
from bench.tables import DEFAULT_FOLDER, Row, number, whole
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.memory import (
    PHASE,
    footprint,
    request_cache_bytes,
    resident_weight_bytes,
)
from poolwise.model.work import ServingLayout
from poolwise.tables import Tables, load

FIGURES = ("tpot_ms_mean", "ttft_ms_mean", "out_tok_s_total")
MOST_FRACTION = 0.95
"""Of a device, what engines are told in practice where weights are tight (llm-d's guides)."""
CHUNK_TOKENS = ServingLayout().max_batched_tokens


class Judged(enum.StrEnum):
    """What the model says of a service that ran."""

    STARTS = "starts"
    TOLD_MORE = "starts if the engine is told to take more of the device than by default"
    REFUSED = "refused"
    IN_CORES = "sizes count cores, several to a device"
    IMPOSSIBLE = "stated devices cannot hold even the weights"


@dataclass(frozen=True, slots=True)
class Service:
    """One row with its verdict."""

    row: Row
    verdict: Judged


def services(rows: Iterable[Row], tables: Tables) -> Iterator[Service]:
    """Every row whose layout is known."""
    calibration = Calibration(tables.efficiencies)
    told = {
        (row.phase, row.term, row.scope, row.format): MOST_FRACTION
        for row in tables.efficiencies
        if (row.phase, row.term) == (PHASE, "memory_fraction") and row.value < MOST_FRACTION
    }
    more = calibration.replaced(told)
    for row in rows:
        run = _run(row, tables)
        if run is not None:
            yield Service(row, _judged(run, calibration, more))


def _run(row: Row, tables: Tables) -> Run | None:
    stated = (column for column in FIGURES if number(row, column))
    several = (found(row, tables, column) for column in stated)
    return next((each for each in several if isinstance(each, Run)), None)


def _judged(run: Run, calibration: Calibration, more: Calibration) -> Judged:
    layout = run.layout
    devices = layout.tensor * layout.pipeline * layout.data
    if devices > (whole(run.row, "n_gpus") or devices):
        return Judged.IN_CORES
    if resident_weight_bytes(run.work, layout) > run.machine.device.memory_bytes:
        return Judged.IMPOSSIBLE
    if _starts(run, calibration):
        return Judged.STARTS
    return Judged.TOLD_MORE if _starts(run, more) else Judged.REFUSED


def _starts(run: Run, calibration: Calibration) -> bool:
    sequences = max(1, math.ceil(min(run.in_flight, BATCH_LIMIT)))
    layout = replace(run.layout, max_num_seqs=sequences, max_batched_tokens=CHUNK_TOKENS)
    longest = request_cache_bytes(run.work, layout, layout.max_model_tokens)
    return footprint(run.work, layout, run.machine, calibration).surely_holds(longest)


def lines(several: Sequence[Service]) -> Iterator[str]:
    """Counts by verdict, and what the verdicts other than a start are of."""
    counts = Counter(each.verdict for each in several)
    for verdict in Judged:
        yield f"{counts[verdict]} of {len(several)} services that ran: {verdict}"
    others = Counter(
        (each.verdict.name, *(each.row[name] for name in ("model", "gpu", "n_gpus", "engine")))
        for each in several
        if each.verdict is not Judged.STARTS
    )
    for key, count in others.most_common():
        yield f"  {count}: {', '.join(key)}"


@ends_on_bad_input
def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the measured tables")
    rows = measured_tables.read(parser.parse_args().data, "serve_measured")
    print("\n".join(lines(list(services(rows, load())))))


if __name__ == "__main__":
    sys.exit(main())
