"""Natural experiments: the same job on two accelerators that differ in few resources.

H100 and H200 have the same arithmetic, but 1.43 times the bandwidth: a job that gains 1.4 is bound
by bandwidth, one that gains nothing is not. So each pair of accelerators comes with pure cases, one
for each resource that differs (a job that it alone decides is faster by its ratio) and ``None``
(nothing that differs matters: a ratio of 1), and the pure case nearest to a ratio names the
resource that decides. A measured ratio within the noise of the border counts for either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from bench.model.choice import SERVING, TRAINING, Rates, jobs, rates
from bench.model.outcome import Outcome, scored
from poolwise.tables import AcceleratorRow, Tables

NATURAL = (
    ("H100-SXM5-80GB", "H200-SXM-141GB"),
    ("B200-SXM-180GB", "B300-SXM"),
    ("B200-SXM-180GB", "GB200-NVL72"),
    ("H200-SXM-141GB", "B200-SXM-180GB"),
    ("H100-SXM5-80GB", "B200-SXM-180GB"),
    ("H100-SXM5-80GB", "H100-PCIe-80GB"),
)
"""Those of performance-model.md, C3: neighbours that differ in few resources."""
TIMES = ("tpot", "ttft")
QUANTITIES = {
    "train_dense": TRAINING,
    "train_moe": TRAINING,
    "tpot": SERVING,
    "ttft": SERVING,
    "offline_throughput": SERVING,
}
DIFFERENT = math.log(1.1)
"""Closer than this, two ratios of resources cannot be told apart by a job."""
NOISE = math.log(1.05)
"""Repeated measurements of one configuration differ by as much (performance-model.md, C4)."""

Entry = dict[str, str | float | int | None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One job on two accelerators: logarithms of how much faster the second is."""

    quantity: str
    before: str
    after: str
    measured: float
    predicted: float


def experiments(outcomes: Iterable[Outcome], tables: Tables) -> list[Entry]:
    """One entry for each two accelerators and quantity, and ``all`` of them together."""
    cells: dict[tuple[str, str, str], list[_Pair]] = {}
    for pair in _pairs(scored(outcomes)):
        cells.setdefault((pair.before, pair.after, pair.quantity), []).append(pair)
    entries, rights = [], []
    for key, pairs in sorted(cells.items()):
        cases = pure_cases(*(_found(tables, name) for name in key[:2]))
        right = [_is_right(pair, cases) for pair in pairs] if len(cases) > 1 else []
        rights += right
        entries.append(_entry(key, pairs, cases, right))
    total = round(100 * mean(rights), 2) if rights else None
    return [*entries, {"from": "all", "to": "all", "pairs": len(rights), "right_percent": total}]


def pure_cases(before: AcceleratorRow, after: AcceleratorRow) -> dict[str, float]:
    """ln of the speed-up that each differing resource would give alone; like ones are merged."""
    cases = {"None": 0.0}
    for name, ratio in _ratios(before, after).items():
        twin = next((each for each, at in cases.items() if abs(at - ratio) < DIFFERENT), None)
        if twin is None:
            cases[name] = ratio
        elif twin != "None":
            cases[f"{twin}, {name}"] = cases.pop(twin)
    return cases


def _ratios(before: AcceleratorRow, after: AcceleratorRow) -> dict[str, float]:
    old, new = before.peak_flops_per_second, after.peak_flops_per_second
    unit = next((each for each in ("bf16", "fp16") if each in old and each in new), "fp32")
    bandwidth = after.memory_bandwidth_bytes_per_second / before.memory_bandwidth_bytes_per_second
    return {
        "Compute": math.log(new[unit] / old[unit]),
        "MemoryBandwidth": math.log(bandwidth),
        "Interconnect": math.log(after.link_bytes_per_second / before.link_bytes_per_second),
    }


def decides(ratio: float, cases: dict[str, float]) -> str:
    """The pure case nearest to the logarithm of a speed-up."""
    return min(cases, key=lambda name: abs(cases[name] - ratio))


def _is_right(pair: _Pair, cases: dict[str, float]) -> bool:
    within = (decides(pair.measured + shift, cases) for shift in (-NOISE, 0.0, NOISE))
    return decides(pair.predicted, cases) in within


def _pairs(counted: Sequence[Outcome]) -> Iterator[_Pair]:
    for quantity, key in QUANTITIES.items():
        for job in jobs(rates(each for each in counted if each.score == quantity), key):
            for before, after in NATURAL:
                if before in job and after in job:
                    yield _Pair(
                        quantity, before, after, *_speedups(quantity, job[before], job[after])
                    )


def _speedups(quantity: str, before: Rates, after: Rates) -> tuple[float, float]:
    """Logarithms, measured and predicted."""
    sign = -1.0 if quantity in TIMES else 1.0
    predicted, measured = (
        sign * math.log(new / old) for old, new in zip(before, after, strict=True)
    )
    return measured, predicted


def _found(tables: Tables, name: str) -> AcceleratorRow:
    row = tables.accelerator(name)
    assert row is not None, "only rows of known accelerators have predictions"
    return row


def _entry(
    key: tuple[str, str, str], pairs: Sequence[_Pair], cases: dict[str, float], right: list[bool]
) -> Entry:
    before, after, quantity = key
    measured = median(pair.measured for pair in pairs)
    predicted = median(pair.predicted for pair in pairs)
    wrong = median(abs(pair.predicted - pair.measured) for pair in pairs)
    return {
        "from": before,
        "to": after,
        "quantity": quantity,
        "pairs": len(pairs),
        "measured_ratio": round(math.exp(measured), 3),
        "predicted_ratio": round(math.exp(predicted), 3),
        "ratio_error_percent": round(100 * math.expm1(wrong), 2),
        "dominant_measured": decides(measured, cases),
        "dominant_predicted": decides(predicted, cases),
        "right_percent": round(100 * mean(right), 2) if right else None,
    }
