"""``python -m bench.autoscale.llmd_knee``: at which load a replica of llm-d's benchmark is full.

A fleet that stays as it is, under a constant rate of llm-d's requests: first tokens by the rate of
each replica, before replicas as llm-d measured them and as our serving model has them. llm-d's loop
holds the 90th percentile of first tokens between 0.40 and 0.55 of 3 s, and "settles empirically at
1.4-1.5 rps" a replica (``llm-d:guides/workload-autoscaling/README.slo-aware.md``), so that is where
1.2 to 1.65 s should come out: a figure that had no part in either engine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator

import numpy as np

from bench.autoscale.episode import driven, durations
from bench.autoscale.llmd import Setup, episode
from bench.autoscale.policies.static import Static

REPLICAS = 6
RATES_PER_SECOND = (1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5)
STAGES = 3
"""Of the same rate, so that a queue has time to grow."""
SEEDS = range(3)
PERCENTILES = (50.0, 90.0, 99.0)
SETUPS = {"measured": Setup(), "modelled": Setup(is_modelled=True)}


def main() -> int:
    """Print a table."""
    argparse.ArgumentParser(
        prog="python -m bench.autoscale.llmd_knee",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    print("\n".join(_lines()))
    return 0


def _lines() -> Iterator[str]:
    yield "| replicas as | requests/s of each | TTFT p50 s | p90 s | p99 s |"
    yield "|---|---|---|---|---|"
    for name, setup in SETUPS.items():
        for rate in RATES_PER_SECOND:
            told = (f"{seconds:.2f}" for seconds in first_tokens(setup, rate))
            yield f"| {name} | {rate:g} | {' | '.join(told)} |"


def first_tokens(setup: Setup, rate_per_second: float) -> list[float]:
    """Seconds at :data:`PERCENTILES`, after the first stage; means over :data:`SEEDS`."""
    found = [_percentiles(setup, rate_per_second, seed) for seed in SEEDS]
    return [statistics.fmean(each) for each in zip(*found, strict=True)]


def _percentiles(setup: Setup, rate_per_second: float, seed: int) -> list[float]:
    stages = STAGES * (REPLICAS * rate_per_second,)
    played = episode(stages, seed, initial=REPLICAS, setup=setup)
    fleet, _ = driven(played, Static(REPLICAS))
    arriving = played.scene.trace.requests
    settled = arriving.arrival_seconds > durations(STAGES)[0]
    waited = fleet.answers().ttft_seconds(arriving)[settled]
    return [float(each) for each in np.percentile(waited, PERCENTILES)]


if __name__ == "__main__":
    sys.exit(main())
