"""Rows of ``train_measured`` as work, layout and machine, with the step time that was measured.

Normalised here: models cut to ``layers_used``, precisions by their several names, network rates
from the words of the source; layouts in :mod:`bench.training_layouts`. Sizes a source leaves out
are chosen as the product would choose them, by its own search.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.formats import number_format
from bench.generic_models import model_of
from bench.machines import machine, network_bytes_per_second
from bench.tables import Row, figure, whole
from bench.training_layouts import least_layout, stated_layout, whole_layout
from poolwise.model.efficiency import Calibration
from poolwise.model.formats import native_arithmetic
from poolwise.model.hardware import Machine
from poolwise.model.shapes import Custom, Experts, Model, Transformer
from poolwise.model.training.shard import layer_count
from poolwise.model.work import Execution, Method, TrainingLayout, TrainingWork
from poolwise.plan.candidates.training.layouts import NoTrainingShape, TrainingSearch
from poolwise.plan.requests.request import FixedLayout
from poolwise.tables import Tables
from poolwise.tables.accelerators import AcceleratorRow

ALIKE = {"tf32": "fp32", "mxfp4": "nvfp4"}
"""Products of the one are computed on the units of the other, and weights are kept apart."""
UNSTATED = "bf16"
"""Precision of a row that states none, as frameworks have it."""
NOT_COMPARABLE = ("FLUX", "variable-length", "CPU offload")
"""Predicted, but no constant is fitted on them: MLPerf trains FLUX on small pictures and BERT
without its padding, which no column says; weights kept on the host are not modelled."""
KIBI = 1024
EAGER = ("eager", "transformers", "hugging face", "huggingface")
"""Words of a framework that runs operator by operator unless told otherwise."""
METHODS = {"lora": Method.LORA, "qlora": Method.QLORA}


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    row: Row
    work: TrainingWork
    fixed: FixedLayout
    interleave: int
    machine: Machine
    count: int
    step_seconds: float
    """NaN where no rate is stated."""
    has_known_shape: bool

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]

    @property
    def is_sparse(self) -> bool:
        """Whether the model is a mixture of experts."""
        shape = self.work.model.shape
        return isinstance(shape, Transformer) and shape.experts is not None

    @property
    def is_comparable(self) -> bool:
        """Whether shape and lengths are as the row says, so that constants may be fitted on it."""
        words = f"{self.row['model']} {self.row['notes']}"
        return self.has_known_shape and not any(each in words for each in NOT_COMPARABLE)


@dataclass(frozen=True, slots=True)
class LaidRun:
    """A run with its whole layout."""

    run: Run
    layout: TrainingLayout


def runs(rows: Iterable[Row], tables: Tables) -> Iterator[Run]:
    """Rows of a known model on one known accelerator, with a rate and a global batch."""
    for row in rows:
        found = described(row, tables)
        if found is not None and not math.isnan(found.step_seconds):
            yield found


def problem(row: Row, tables: Tables) -> str | None:
    """Why a row is no run, in a few words; None where it is one."""
    if tables.accelerators.find(row["gpu"]) is None:
        return "accelerator is not known"
    if whole(row, "n_gpus") is None or whole(row, "global_batch") is None:
        return "count or global batch is not stated"
    if model_of(row, tables) is None:
        return "neither shape nor counts of the model are known"
    return None if any(runs([row], tables)) else "no rate is stated"


def laid(run: Run, calibration: Calibration) -> LaidRun:
    """The run with the sizes its source left out chosen by the planner, else the least that the
    stated ones leave: it ran."""
    batch = run.work.global_batch_samples
    known = whole_layout(run.fixed, run.interleave, run.count, batch)
    if known is not None:
        return LaidRun(run, known)
    found = TrainingSearch(run.work, run.fixed, run.machine, calibration).best(run.count)
    if isinstance(found, NoTrainingShape):
        return LaidRun(run, least_layout(run.fixed, run.count, batch))
    return LaidRun(run, found.layout)


def described(row: Row, tables: Tables) -> Run | None:
    """The same of one row, whether it states a rate or not."""
    model, accelerator = model_of(row, tables), tables.accelerators.find(row["gpu"])
    count, batch = whole(row, "n_gpus"), whole(row, "global_batch")
    if model is None or accelerator is None or count is None or batch is None:
        return None
    cut = _cut(model, _layers_used(row, layer_count(model)))
    work = _work(row, cut, batch, _precision(row, model, accelerator))
    step_seconds = _step_seconds(row, work, count) or math.nan
    fixed, interleave = stated_layout(row, count, batch)
    known = tables.model(row["model"]) is not None
    ran_on = machine(accelerator, network_bytes_per_second(row["interconnect"], accelerator))
    return Run(row, work, fixed, interleave, ran_on, count, step_seconds, known)


def _work(row: Row, model: Model, batch: int, precision: str) -> TrainingWork:
    return TrainingWork(
        model=model,
        global_batch_samples=batch,
        sequence_tokens=sequence_tokens(row),
        precision=precision,
        method=METHODS.get(row["task"], Method.FULL),
        execution=_execution(row["framework"]),
        software_year=software_year(row["source_date"]),
    )


def _execution(framework: str) -> Execution:
    is_eager = "compiled" not in framework and any(word in framework for word in EAGER)
    return Execution.EAGER if is_eager else Execution.FUSED


def _precision(row: Row, model: Model, accelerator: AcceleratorRow) -> str:
    """MLPerf's submissions train pictures in 16 bits, and language models in 8 on what has them."""
    stated = number_format(row["precision"]) or UNSTATED
    precision = ALIKE.get(stated, stated)
    if row["precision"].endswith("(see submission)"):
        computes = native_arithmetic(precision, accelerator.peak_flops_per_second) is not None
        return precision if computes and not isinstance(model.shape, Custom) else "bf16"
    return precision


def sequence_tokens(row: Row) -> int | None:
    """As stated, also in thousands (``8k``); a longest length without padding (``512 max``) is half
    full on average, as BERT's text from Wikipedia is."""
    match = re.fullmatch(r"(\d+)(k?)( max)?", row["seq_len"].lower())
    if match is None:
        return whole(row, "seq_len")
    return int(match[1]) * (KIBI if match[2] else 1) // (2 if match[3] else 1)


def software_year(words: str) -> float | None:
    """Decimal year of a release (``v25.04.02``, ``26.06 NeMo``) or a date (``2024-09``); a year
    alone, or a span that ends in one, is taken in its middle."""
    release = re.match(r"v?(\d\d)\.(\d\d)\b", words)
    if release:
        return 2000 + int(release[1]) + (int(release[2]) - 0.5) / 12
    month = re.match(r"(20\d\d)-(\d\d)", words)
    if month:
        return int(month[1]) + (int(month[2]) - 0.5) / 12
    year = re.match(r"20\d\d", words)
    return int(year[0]) + 0.5 if year else None


def _layers_used(row: Row, layers: int | None) -> int | None:
    """As the source says, unless its virtual stages divide the whole model and not what it says."""
    used = whole(row, "layers_used")
    chunks = (whole(row, "pp") or 1) * (whole(row, "vp") or 1)
    if used and layers and used % chunks and layers % chunks == 0:
        return None
    return used


def _cut(model: Model, layers: int | None) -> Model:
    """A proxy with fewer layers, as some sources measure."""
    shape = model.shape
    if layers is None or not isinstance(shape, Transformer) or layers >= shape.layers:
        return model
    windowed = shape.windowed_layers
    cut = replace(
        shape,
        layers=layers,
        windowed_layers=None if windowed is None else windowed * layers // shape.layers,
        experts=shape.experts and _some_sparse(shape.experts, layers),
    )
    return replace(model, shape=cut)


def _some_sparse(experts: Experts, layers: int) -> Experts:
    """A proxy of a sparse model has a sparse layer at least, or it would stand for none."""
    return replace(experts, dense_layers=min(experts.dense_layers, layers - 1))


def _step_seconds(row: Row, work: TrainingWork, count: int) -> float | None:
    tokens, samples = figure(row, "tokens_per_s_per_gpu"), figure(row, "samples_per_s")
    if isinstance(work.model.shape, Transformer) and tokens and work.sequence_tokens:
        return work.global_batch_samples * work.sequence_tokens / (tokens * count)
    return work.global_batch_samples / samples if samples else None
