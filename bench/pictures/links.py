"""What slower links cost a gang: the step of a 70B model over 64 accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import CALIBRATION, examples, machine
from poolwise.model.hardware import Machine
from poolwise.model.prediction import TrainingPrediction
from poolwise.model.training.step import predict_training
from poolwise.model.work import Recompute, TrainingLayout
from poolwise.plan.requests.request import TrainingRequest

EXAMPLE, ACCELERATOR = "llama-70b", "H100-SXM5-80GB"
NETWORKS = np.geomspace(3.125e9, 400e9, 36)
NAMED = {3.125: "25 GbE", 12.5: "100 GbE", 50.0: "400 GbE", 400.0: "8 x 400G"}
PCIE_BYTES_PER_SECOND = 64e9
TITLE = "Slow links leave a gang waiting, unless its shape asks little of them"


@dataclass(frozen=True)
class Case:
    """A shape on one kind of link inside the node."""

    label: str
    is_on_pcie: bool
    changes: Mapping[str, Any]
    """To the shape that is best on the demo's nodes."""


STAGES = {"tensor": 1, "pipeline": 8, "interleave": 2, "recompute": Recompute.FULL}
CASES = (
    Case("tensor 8\non NVLink", False, {}),
    Case("tensor 8\non PCIe", True, {}),
    Case("pipeline 8\non NVLink", False, STAGES),
    Case("pipeline 8\non PCIe", True, STAGES),
)


def draw() -> Figure:
    """Left the network between nodes, right the links inside them."""
    drawn = style.figure(3.9)
    left, right = drawn.subplots(1, 2, width_ratios=(1.2, 1))
    _between_nodes(left)
    _inside_nodes(right)
    style.note(
        drawn,
        f"examples/training-llama-70b.yaml on 64 {ACCELERATOR}, eight a node; left data 8 x tensor "
        "8, right data 8 x the shape, on 400 GB/s.\nPCIe: 64 GB/s, shared by the eight; pipeline: "
        "16 stages of 5 layers, with activations computed again.",
    )
    return drawn


def _on_pcie(given: Machine) -> Machine:
    link = replace(
        given.interconnect,
        intra_node_bytes_per_second=PCIE_BYTES_PER_SECOND,
        is_switched=False,
        peer_bytes_per_second=None,
    )
    return replace(given, interconnect=link)


def _between_nodes(axes: Axes) -> None:
    style.gridded(axes)
    predictions = [_predicted(machine(ACCELERATOR), network, {}) for network in NETWORKS]
    steps = np.array([each.step_seconds.mid for each in predictions])
    waits = np.array([_links(each) for each in predictions])
    across = NETWORKS / 1e9
    axes.fill_between(across, 0, steps - waits, color=style.ORANGE, linewidth=0, label="all else")
    axes.fill_between(
        across, steps - waits, steps, color=style.PURPLE, linewidth=0, label="waiting for links"
    )
    axes.set(xscale="log", xlim=(across[0], across[-1]), ylim=(0, steps[0] * 1.02))
    axes.set_xticks(list(NAMED), [f"{value:.3g}\n{name}" for value, name in NAMED.items()])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", labelsize=8)
    axes.set(xlabel="network of one node, GB/s", ylabel="seconds of one optimizer step")
    axes.set_title("Between nodes")
    axes.legend(loc="upper right", fontsize=8.5)


def _inside_nodes(axes: Axes) -> None:
    style.gridded(axes)
    for row, case in enumerate(CASES):
        given = machine(ACCELERATOR)
        predicted = _predicted(_on_pcie(given) if case.is_on_pcie else given, 400e9, case.changes)
        assert predicted.memory.fits, case.label
        seconds, share = predicted.step_seconds.mid, _links(predicted) / predicted.step_seconds.mid
        axes.plot([1, seconds], [row, row], color=style.GREY, linewidth=1.5)
        axes.plot(seconds, row, "o", color=style.PURPLE, markersize=9)
        side = -8 if seconds > 500 else 8
        axes.annotate(
            f"{seconds:,.0f} s, {100 * share:.0f} % waiting",
            (seconds, row),
            (side, 7),
            textcoords="offset points",
            ha="right" if side < 0 else "center",
            fontsize=8.5,
        )
    axes.set_yticks(range(len(CASES)), [case.label for case in CASES])
    axes.set(xscale="log", xlim=(20, 4000), ylim=(len(CASES) - 0.5, -0.7))
    axes.set_xticks([30, 100, 300, 1000, 3000], ["30", "100", "300", "1,000", "3,000"])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("seconds of one optimizer step")
    axes.set_title("Inside a node")


def _predicted(given: Machine, network: float, changes: Mapping[str, Any]) -> TrainingPrediction:
    request, layout = examples()[EXAMPLE].request, examples()[EXAMPLE].layout(ACCELERATOR)
    assert isinstance(request, TrainingRequest) and isinstance(layout, TrainingLayout)
    link = replace(given.interconnect, inter_node_bytes_per_second=float(network))
    shape, changed = replace(layout, **changes), replace(given, interconnect=link)
    return predict_training(request.work, shape, changed, CALIBRATION)


def _links(predicted: TrainingPrediction) -> float:
    return sum(term.seconds for term in predicted.ledger if term.name == "Interconnect")
