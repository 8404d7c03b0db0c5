"""Where the time of each example goes, on the pool that it gets, and what it is bound by."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import Example, examples
from poolwise.model.prediction import ServingPrediction

GROUPS = {
    "Compute": ("arithmetic", style.ORANGE),
    "MemoryBandwidth": ("memory traffic", style.BLUE),
    "Interconnect": ("links", style.PURPLE),
    "Input": ("waiting for input", style.GREEN),
    "Prefill": ("prompts, own and others'", style.RED),
    "Interference": ("prompts, own and others'", style.RED),
    "Queue": ("queue", style.TEAL),
    "KvCapacity": ("queue", style.TEAL),
}
REST = ("rest", style.GREY)
LEAST_SHARE_TOLD = 0.07
TITLE = "Where the time goes, and what each workload is bound by"


def draw() -> Figure:
    """One bar an example, its parts in percent of a step or of a mean request."""
    drawn = style.figure(4.4)
    axes = drawn.subplots()
    shown = sorted(examples().values(), key=_order)
    for row, example in enumerate(shown):
        _bar(axes, row, example)
    axes.set_yticks(range(len(shown)), [_label(each) for each in shown])
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="percent of one training step, or of one mean request")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(TITLE, pad=40)
    _legend(axes)
    style.note(
        drawn,
        "examples/ on the demo's nodes, each alone: the ledger of status.plan. What binds is "
        "what gains the most throughput inside the\ntargets when there is 10 % more of it, and so "
        "need not be the longest part.",
    )
    return drawn


def _order(example: Example) -> tuple[bool, str]:
    return isinstance(example.chosen.prediction, ServingPrediction), example.name


def _label(example: Example) -> str:
    return f"{example.name}\non {example.chosen.accelerator}"


def _parts(example: Example) -> dict[tuple[str, str], float]:
    """Seconds of each group, in the order of the legend."""
    assert example.chosen.prediction is not None
    parts = dict.fromkeys((*GROUPS.values(), REST), 0.0)
    for term in example.chosen.prediction.ledger:
        parts[GROUPS.get(term.name, REST)] += term.seconds
    return parts


def _bar(axes: Axes, row: int, example: Example) -> None:
    parts = _parts(example)
    whole, left = sum(parts.values()), 0.0
    for (_, colour), seconds in parts.items():
        share = seconds / whole
        axes.barh(row, 100 * share, left=left, height=0.62, color=colour, edgecolor=style.PAPER)
        if share >= LEAST_SHARE_TOLD:
            axes.text(
                left + 50 * share, row, f"{100 * share:.0f}", ha="center", va="center",
                color="white", fontsize=8.5, fontweight="bold",
            )  # fmt: skip
        left += 100 * share
    bound = example.chosen.bottleneck
    assert bound is not None
    axes.text(101, row, bound.resource.value, va="center", fontsize=9, fontweight="bold")


def _legend(axes: Axes) -> None:
    for name, colour in dict.fromkeys((*GROUPS.values(), REST)):
        axes.bar(0, 0, color=colour, label=name)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.01), ncols=4, fontsize=8, handlelength=0.9,
        handletextpad=0.4, columnspacing=1.1,
    )  # fmt: skip
    axes.text(101, -0.62, "bound by", fontsize=8.5, color=style.MUTED)
