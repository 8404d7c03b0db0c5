"""A target on the tail decides how much one replica may take, and so how many there are."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import CALIBRATION, examples, machine
from poolwise.model.serving.capacity import capacity, ceiling_requests_per_second
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, state_at_rate
from poolwise.model.serving.replica import replica
from poolwise.model.serving.targets import metric_percentile
from poolwise.model.work import Metric, ServingLayout, Target
from poolwise.plan.requests.request import ServingRequest

EXAMPLE, ACCELERATOR = "chat", "L40S"
PERCENTILES = ((50.0, style.GREY), (95.0, style.BLUE), (99.0, style.ORANGE))
MOST_SECONDS = 6.0
PEAK = 60.0
LIMITS = (0.12, 10.0)
MOST_REPLICAS = 40
TITLE = "The tail decides how many replicas there are"


def draw() -> Figure:
    """Left the first token over the rate of one replica, right replicas over the target."""
    drawn = style.figure(3.8)
    left, right = drawn.subplots(1, 2)
    served, target = _replica(), _target()
    style.gridded(left)
    style.gridded(right)
    _latencies(left, served, target)
    _replicas(right, served)
    style.note(
        drawn,
        f"examples/inference-chat.yaml on one {ACCELERATOR} a replica. Right: that target alone, "
        "without headroom or redundancy.",
    )
    return drawn


def _request() -> ServingRequest:
    request = examples()[EXAMPLE].request
    assert isinstance(request, ServingRequest)
    return request


def _replica() -> Replica:
    layout = examples()[EXAMPLE].layout(ACCELERATOR)
    assert isinstance(layout, ServingLayout)
    return replica(_request().work, layout, machine(ACCELERATOR), CALIBRATION)


def _target() -> float:
    [seconds] = [each.seconds for each in _request().work.targets if each.metric is Metric.TTFT]
    return seconds


def _latencies(axes: Axes, served: Replica, target: float) -> None:
    rates = np.linspace(0.1, ceiling_requests_per_second(served) * 0.998, 160)
    for percent, colour in PERCENTILES:
        seconds = [_seconds(served, rate, percent) for rate in rates]
        axes.plot(rates, seconds, color=colour, label=f"p{percent:g}")
    axes.axhline(target, color=style.RED, linestyle="--", linewidth=1.3)
    axes.text(
        0.15, target * 1.04, f"target: p99 within {target:g} s", color=style.RED, fontsize=8.5
    )
    most = capacity(served, _request().work.targets).requests_per_second
    axes.plot(most, _seconds(served, most, 99.0), "o", color=style.INK, zorder=5)
    axes.axvline(most, color=style.MUTED, linestyle=":", linewidth=1.2)
    axes.annotate(
        f"{most:.1f} a second\nis the most", (most, 0), (-5, 120), textcoords="offset points",
        ha="right", fontsize=8.5,
    )  # fmt: skip
    axes.set(ylim=(0, MOST_SECONDS), xlim=(0, rates[-1] * 1.02))
    axes.set(xlabel="requests a second on one replica", ylabel="time to first token, s")
    axes.set_title("One replica")
    axes.legend(loc="upper left", fontsize=8.5)


def _seconds(served: Replica, rate: float, percent: float) -> float:
    at = state_at_rate(served, float(rate))
    return (
        math.inf if at is None else metric_percentile(latencies(served, at), Metric.TTFT, percent)
    )


def _replicas(axes: Axes, served: Replica) -> None:
    """For one peak, over the target, by the percentile that has to keep it."""
    limits = np.geomspace(*LIMITS, 120)
    for percent, colour in PERCENTILES:
        count = [_count(served, percent, limit) for limit in limits]
        axes.plot(limits, count, color=colour, label=f"p{percent:g}", drawstyle="steps-post")
    axes.set(xscale="log", xlim=LIMITS, xlabel="target of the time to first token, s")
    axes.set_xticks([0.15, 0.3, 1, 3, 10], ["0.15", "0.3", "1", "3", "10"])
    axes.set_xticks([], minor=True)
    axes.set(ylabel="replicas", ylim=(0, MOST_REPLICAS))
    axes.set_title(f"Replicas for {PEAK:g} requests a second")
    axes.legend(loc="upper right", fontsize=8.5)


def replicas(percent: float, seconds: float) -> float:
    """How many keep that percentile of the first token within so many seconds, as drawn."""
    return _count(_replica(), percent, seconds)


def _count(served: Replica, percent: float, limit: float) -> float:
    rate = _most(served, percent, limit)
    return math.ceil(PEAK / rate) if rate else math.nan


def _most(served: Replica, percent: float, limit: float) -> float:
    """Requests a second of one replica inside one target."""
    target = Target(Metric.TTFT, percent, float(limit))
    return capacity(served, (target,)).requests_per_second
