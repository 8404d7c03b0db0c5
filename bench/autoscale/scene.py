"""What a replay is of: a trace, an engine, targets, and how the fleet and its scrapes behave."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from bench.autoscale.engine import Engine
from bench.autoscale.sizing import Targets, Work
from bench.autoscale.traces import Trace, scaled, window
from poolwise.sim.serving.requests import Floats

WARM_UP_SECONDS = 300.0
"""Of each trace, not scored."""
LONGEST_WARM_UP = 0.5
"""Of a short trace: the share that is not scored at most."""
FIRST_SECONDS = 120.0
"""In which a policy may ask for its first replicas: until these serve the fleet is none of its own
doing, and not scored either."""
BIN_SECONDS = 60.0
PEAK_REPLICAS = 40.0
SCALINGS = 3
"""Copies of a trace do not peak in the very same minute, so its factor is found in a few rounds."""
START_DELAY_SECONDS = 60.0
START_DELAYS_SECONDS = (20.0, 60.0, 180.0, 420.0)


class Routing(enum.StrEnum):
    """Who spreads the requests."""

    LEAST_OUTSTANDING = "least-outstanding"
    SERVICE = "service"
    """Kubernetes' own: any replica, by chance."""


@dataclass(frozen=True, slots=True)
class Scraping:
    """How a policy's samples come about."""

    interval_seconds: float = 10.0
    """As the operator looks unless told otherwise (``scaling_interval_seconds``)."""
    noise: float = 0.05
    """Standard deviation of a gauge over its value."""
    missing_share: float = 0.0
    """Of scrapes that find no answer."""
    tells_lengths: bool = True
    """Whether engines have histograms of prompts and answers: SGLang's are off unless asked for."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One trace before one fleet."""

    trace: Trace
    engine: Engine
    targets: Targets
    work: Work
    """What each request takes of a replica, by the engine as the model knows it."""
    start_delay_seconds: float = START_DELAY_SECONDS
    routing: Routing = Routing.LEAST_OUTSTANDING
    scraping: Scraping = Scraping()
    warm_up_seconds: float = WARM_UP_SECONDS
    least_replicas: int = 1
    most_replicas: int = 2 * int(PEAK_REPLICAS)
    initial_replicas: int | None = None
    """None: what the first five minutes need on average."""
    seed: int = 0

    def needed_replicas(self, bin_seconds: float = BIN_SECONDS) -> Floats:
        """Of a fluid, by bins from the start of the trace."""
        return self.work.needed_replicas(self.trace.requests, bin_seconds)

    @property
    def first_replicas(self) -> int:
        """With which the replay begins."""
        if self.initial_replicas is not None:
            return self.initial_replicas
        seconds = min(self.warm_up_seconds, WARM_UP_SECONDS) or BIN_SECONDS
        needed = float(self.needed_replicas(seconds)[0])
        return min(max(math.ceil(needed), self.least_replicas), self.most_replicas)


def of_peak(
    trace: Trace, engine: Engine, targets: Targets, work: Work, peak_replicas: float
) -> Scene:
    """The trace with so many users that its busiest minute needs ``peak_replicas``."""
    factor, grown = 1.0, trace
    for _ in range(SCALINGS):
        peak = float(work.needed_replicas(grown.requests, BIN_SECONDS).max())
        factor *= peak_replicas / peak
        grown = scaled(trace, factor)
    return Scene(grown, engine, targets, work, most_replicas=math.ceil(2 * peak_replicas))


def around_peak(scene: Scene, seconds: float, before: float) -> Scene:
    """A stretch of the trace, of which the share ``before`` lies before the busiest minute."""
    peak = float(scene.needed_replicas().argmax()) * BIN_SECONDS
    begin = max(min(peak - before * seconds, scene.trace.seconds - seconds), 0.0)
    return replace(scene, trace=window(scene.trace, begin, seconds))


def with_settings(
    scene: Scene,
    start_delay_seconds: float,
    routing: Routing,
    scraping: Scraping,
    slowness: float = 1.0,
    seed: int = 0,
) -> Scene:
    """The same trace under other circumstances; true steps take ``slowness`` times the model's."""
    warm_up_seconds = max(scene.warm_up_seconds, start_delay_seconds + FIRST_SECONDS)
    return replace(
        scene,
        engine=scene.engine.slower(slowness),
        start_delay_seconds=start_delay_seconds,
        warm_up_seconds=min(warm_up_seconds, LONGEST_WARM_UP * scene.trace.seconds),
        routing=routing,
        scraping=scraping,
        seed=seed,
    )
