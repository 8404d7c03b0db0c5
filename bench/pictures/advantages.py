"""How many of a cheap accelerator a dear one replaces, workload by workload."""

from __future__ import annotations

from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import TABLES, Example, examples
from poolwise.model.prediction import ServingPrediction

DEAR, CHEAP = "H100-SXM5-80GB", "L40S"
TITLE = "Comparative advantage: who gains the most from the dear accelerator"


def draw() -> Figure:
    """One bar an example; the line is what the dear one costs more."""
    drawn = style.figure(3.5)
    axes = drawn.subplots()
    ratio = _price(DEAR) / _price(CHEAP)
    gains = sorted(((_gain(each), each.name) for each in _comparable()), reverse=True)
    for row, (gain, name) in enumerate(gains):
        colour = style.ORANGE if gain > ratio else style.BLUE
        axes.barh(row, gain, height=0.6, color=colour)
        axes.text(
            gain - 0.05, row, f"{gain:.1f}", va="center", ha="right", color="white", fontsize=9
        )
        axes.text(0.08, row, name, va="center", color="white", fontweight="bold", fontsize=9)
    axes.axvline(ratio, color=style.INK, linewidth=1.4, linestyle="--")
    axes.annotate(
        f"one {DEAR} costs as much as {ratio:.1f} {CHEAP}", (ratio, len(gains) - 0.45), (-6, 0),
        textcoords="offset points", ha="right", fontsize=8.5,
    )  # fmt: skip
    axes.set_yticks([])
    axes.set(xlim=(0, max(gain for gain, _ in gains) * 1.08), ylim=(len(gains) - 0.1, -0.6))
    axes.set_xlabel(f"{CHEAP} that one {DEAR} replaces, by throughput of one accelerator")
    axes.set_title(TITLE)
    style.note(
        drawn,
        "Predicted throughput inside the targets, each at its best shape on the pool. Right of the "
        "line the dear pool is the cheaper one.\nllama-70b is missing: it has no place on "
        f"the demo's {CHEAP} at all. embeddings too: on either its bound is the host.",
    )
    return drawn


def _comparable() -> list[Example]:
    """Those that run on both, and are bound there by the accelerator or its input."""
    both = [e for e in examples().values() if all(e.candidates[n].feasible for n in (DEAR, CHEAP))]
    return [each for each in both if not _is_bound_by_host(each)]


def _is_bound_by_host(example: Example) -> bool:
    bounds = [example.candidates[name].bottleneck for name in (DEAR, CHEAP)]
    return all(bound is not None and bound.resource.value == "Host" for bound in bounds)


def _gain(example: Example) -> float:
    return _throughput(example, DEAR) / _throughput(example, CHEAP)


def _throughput(example: Example, accelerator: str) -> float:
    """Samples or requests a second of one accelerator."""
    predicted, candidate = example.prediction(accelerator), example.candidates[accelerator]
    if isinstance(predicted, ServingPrediction):
        return predicted.capacity_requests_per_second / candidate.count
    return predicted.samples_per_second / candidate.count


def _price(accelerator: str) -> float:
    row = TABLES.accelerator(accelerator)
    assert row is not None and row.price_per_hour_usd is not None
    return row.price_per_hour_usd
