"""``python -m poolwise.cluster.metrics_docs``: docs/metrics.md, from the table of metrics."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from poolwise.api.generated import Page
from poolwise.cluster.metric_table import SECTIONS, Definition

_HEAD = """# Metrics

Made from the operator's own table of metrics by `make generate`; do not edit.

`/metrics` on `POOLWISE_METRICS_LISTEN` serves them in Prometheus' text format. Only the
leader has metrics of pools and workloads, so that sums over replicas are right; a deleted pool or
workload leaves no series behind. Figures are those of the statuses, at the moment of the scrape.
"""

_RUNS = """## What a training container may tell

Poolwise reads `/metrics` of a TrainingJob's rank 0, on the port of `spec.run.ports` that is named
`metrics`, every `POOLWISE_TRAINING_INTERVAL_SECONDS` (15 s). All are optional; what is missing is
predicted or assumed. Where `POOLWISE_PROMETHEUS_URL` is set, that Prometheus is queried instead,
and has to scrape these pods (the chart's PodMonitor is for engines).

- `training_steps_total` (counter): optimizer steps done, for progress; counted from 0, or from the
  checkpoint's step, after a restart.
- `training_step_seconds` (histogram or summary): compared with the model. Without it a step is
  timed by the count of steps, which takes 20 of them.
- `training_samples_total` (counter): samples of all ranks; divided by `globalBatchSize` they are
  the progress where `training_steps_total` is missing.
- `training_last_checkpoint_timestamp_seconds` (gauge, Unix time): what a stop would lose, and
  where the run goes on from after one. A run that counts steps but lacks this metric has kept no
  checkpoint; where both are missing, half of `checkpoint.interval` is assumed to be lost.

`status.observed` shows the result ([concepts](concepts.md#what-was-measured)):
`training.steps` of `training.ofSteps`, `training.stepSeconds`, and `ratio` to the prediction. With
`prometheus_client`:

```python
import os

from prometheus_client import Counter, Gauge, Histogram, start_http_server

STEPS = Counter("training_steps", "Optimizer steps.")  # the library appends _total
SECONDS = Histogram("training_step_seconds", "Time of a step.")
SAVED = Gauge("training_last_checkpoint_timestamp_seconds", "Unix time.")
if int(os.environ["RANK"]) == 0:
    start_http_server(9090)
for batch in loader:
    with SECONDS.time():
        train(batch)
    STEPS.inc()
    if saved_a_checkpoint():
        SAVED.set_to_current_time()
```
"""

_NOTES: Mapping[str, str] = {
    "The process": "Every replica serves these, and `process_*` (memory, CPU, start).",
    "Pools": "One AcceleratorPool each. Hardware figures are per accelerator.",
    "Workloads, each": (
        "`POOLWISE_WORKLOAD_METRICS=false` turns them off. A workload has 10 to 20 series. "
        "Its cost and energy are counted up to the moment of the scrape. "
        "`namespace` is the workload's own: scrape with `honorLabels: true`, else Prometheus "
        "renames it to `exported_namespace`. The metrics of engines, scraped by the chart's "
        "PodMonitor for workloads, have the same two labels, so that queries can join them with "
        "the target."
    ),
}


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for title, metrics in SECTIONS.items():
        lines += [f"## {title}", ""]
        lines += [_NOTES[title], ""] if title in _NOTES else []
        lines += [*_table(metrics), ""]
    return "\n".join([*lines, _RUNS])


def _table(metrics: Iterable[Definition]) -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "|---|---|---|---|"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.full_name}` | {metric.type} | {labels} | {metric.meaning} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` say that it differs; 1 if it does."""
    path = Path("docs/metrics.md")
    return Page("poolwise.cluster.metrics_docs", path, page(), "table of metrics").main(arguments)


if __name__ == "__main__":
    sys.exit(main())
