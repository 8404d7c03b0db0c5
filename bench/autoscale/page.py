"""``python -m bench.autoscale.page --data DIR [--results FILE]``: write docs/autoscaling-replay.md.

Replays what ``--results`` does not hold yet, which takes hours, and adds it there line by line;
then the page is written of all that it holds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.autoscale import document, llmd, plots, scene, sizing, steps, suite, traces
from bench.autoscale.cells import Cell, Standing, append, cell, read, standings
from bench.autoscale.engine import engine
from bench.pictures import style
from bench.tables import DEFAULT_FOLDER

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = DOCS / "pictures" / "autoscaling"
TEMPLATE = Path(__file__).with_name("page.md")
RESULTS = Path(__file__).resolve().parents[2] / "build" / "autoscaling.jsonl"
PEAKS = {
    "servegen_r1_24h": 20.0,
    "mooncake_conversation": 40.0,
    "azure2023_code": 20.0,
    "servegen_mlarge_burst_day1": 10.0,
    "azure2023_conv": 10.0,
}
"""Traces of the page, and how many replicas their busiest minute needs: few for those of short
answers, of which forty replicas serve half a million an hour."""
HOUR_SECONDS, BEFORE_PEAK = 3600.0, 2.0 / 3.0
EPISODES = 2
ORDERS = 2


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.page", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the traces")
    parser.add_argument("--results", type=Path, default=RESULTS, help="lines of JSON")
    parser.add_argument("--processes", type=int, default=suite.PROCESSES)
    asked = parser.parse_args()
    for name, peak in PEAKS.items():
        _run(asked.data, asked.results, name, peak, asked.processes)
    orders = [llmd.STAGES_PER_SECOND, *llmd.permuted(llmd.STAGES_PER_SECOND, ORDERS, 0)]
    episodes = [(order, llmd.scored(order, range(EPISODES), False, None)) for order in orders]
    after = steps.text(steps.run(asked.data, asked.processes))
    write(read(asked.results), llmd.text(episodes), after)


def _run(data: Path, results: Path, name: str, peak: float, processes: int) -> None:
    there = {each.name for each in read(results) if each.trace == name}
    missing = [each for each in suite.available() if each not in there]
    if not missing:
        return
    found = _scene(data, name, peak)
    for done in suite.run(found, missing, processes):
        append(results, cell(found, peak, done))


def _scene(data: Path, name: str, peak: float) -> scene.Scene:
    path = next(iter(data.rglob(f"{name}.csv*")))
    trace = traces.load(path)
    on, targets = engine(), sizing.Targets()
    work = sizing.measured(on, trace.requests, targets)
    found = scene.of_peak(trace, on, targets, work, peak)
    is_long = trace.seconds > HOUR_SECONDS
    return scene.around_peak(found, HOUR_SECONDS, BEFORE_PEAK) if is_long else found


def write(cells: Sequence[Cell], episodes: str, after_steps: str) -> None:
    """The page and its pictures."""
    found = list(standings(cells))
    _draw("pareto", plots.pareto(found), "Missed targets against cost by trace")
    _draw("calm", plots.calm(found), "Direction changes and recovery by policy")
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("<!-- STANDINGS -->", "\n".join(f"- {s.trace}: {s.words()}" for s in found))
    text = text.replace("<!-- RESULTS -->", "\n\n".join("\n".join(_table(s)) for s in found))
    text = text.replace("<!-- LLMD -->", episodes).replace("<!-- STEPS -->", after_steps)
    (DOCS / "autoscaling-replay.md").write_text(text, encoding="utf-8")


def _table(standing: Standing) -> Iterator[str]:
    peak = standing.cells[0].peak_replicas
    yield f"### {standing.trace}, {peak:g} replicas at its busiest minute"
    yield ""
    yield f"Aim: {100 * standing.cells[0].aim:.2f} %."
    yield ""
    yield (
        "| policy | setting | attainment % | replica-h | over the best rival at the aim | over O1 "
        "| changes/h | recovery s | p99 TTFT s | p99 TPOT ms |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in sorted(standing.cells, key=lambda each: suite.NAMES.index(each.name)):
        yield _line(standing, each)


def _line(standing: Standing, each: Cell) -> str:
    rival, oracle = standing.best_rival, standing.of(suite.O1)
    recovery = each.seconds_to_recover
    cells = (
        each.name,
        document.setting(each.setting),
        f"{100 * each.attainment:.2f}",
        f"{each.replica_hours:.2f}",
        f"{each.replica_hours / rival.replica_hours:.2f}" if rival and each.is_good else "",
        f"{each.replica_hours / oracle.replica_hours:.2f}" if oracle else "",
        f"{each.direction_changes_per_hour:.1f}",
        "never" if recovery is None else f"{recovery:.0f}",
        f"{each.p99_ttft_seconds:.2f}",
        f"{1e3 * each.p99_tpot_seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _draw(name: str, drawn: Figure, title: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(style.as_svg(drawn, title), encoding="utf-8")


if __name__ == "__main__":
    main()
