"""Jobs that several accelerators ran, and folds that keep all runs of one together.

Rows that differ in their accelerator alone are of different groups, so of different folds
(:func:`bench.accuracy.fold_of`). Constants without the fold of the one have seen the other, and
take the other's error for their own: what two rows truly differ by, a and b, comes back as b and a.
On rows that no fit has seen it is not so. Hence rows that are compared with one another have folds
of their own: of whole clusters of groups, that no job reaches across.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.accuracy import fold_of
from bench.tables import Row

TRAINING = ("model", "task", "n_gpus", "seq_len", "global_batch", "precision", "layers_used")
SERVING = (
    "source", "mode", "engine", "engine_version", "model", "n_gpus", "tp", "pp", "attn_dp",
    "moe_tp", "moe_ep", "weight_precision", "moe_precision", "kv_precision", "isl", "osl",
    "concurrency", "qps_offered", "batch_per_dp", "prefill_cfg", "decode_cfg",
)  # fmt: skip
"""Columns that two rows of one job agree in; the accelerator is not among them."""
JOBS = "_jobs"
"""Part of the names of files with constants without a fold of jobs."""


def job_of(row: Row) -> tuple[str, ...]:
    """What was run, whatever it ran on."""
    key = SERVING if "mode" in row else TRAINING
    return tuple(row.get(column, "") for column in key)


def job_folds(rows: Iterable[Row]) -> dict[str, int]:
    """Fold of each row's cluster, by ``row_id``: groups that have a job in common share it."""
    known = {row["row_id"]: row for row in rows}
    clusters = _Clusters()
    first: dict[tuple[str, ...], str] = {}
    for row in known.values():
        clusters.join(first.setdefault(job_of(row), row["group"]), row["group"])
    return {row_id: fold_of(clusters.name_of(row["group"])) for row_id, row in known.items()}


def shared(rows: Sequence[Row]) -> list[Row]:
    """Rows of jobs that several accelerators ran."""
    ran: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        ran.setdefault(job_of(row), set()).add(row["gpu"])
    return [row for row in rows if len(ran[job_of(row)]) > 1]


def companions(rows: Iterable[Row], fold_of_row: Mapping[str, int]) -> dict[str, int]:
    """Folds of rows that no fit has seen but whose job has rows that one has."""
    several = [row for row in rows if row.get("row_id")]
    of_job = {
        job_of(row): fold_of_row[row["row_id"]] for row in several if row["row_id"] in fold_of_row
    }
    return {row["row_id"]: of_job[job_of(row)] for row in several if job_of(row) in of_job}


class _Clusters:
    """Names that were joined, each cluster under the least of its names."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def join(self, one: str, other: str) -> None:
        """Both belong together."""
        least, most = sorted((self.name_of(one), self.name_of(other)))
        self._above[most] = least

    def name_of(self, name: str) -> str:
        """Of its cluster."""
        while (above := self._above.get(name, name)) != name:
            name = above
        return name
