"""Which resource may decide how long a job takes, from its speed on two accelerators.

If time goes as ``R1^-e1 * R2^-e2 * ...`` with elasticities that sum to 1 (what is left over,
launches and hosts, is the resource ``None``, which never differs), then the logarithm of the
speed-up is the mean of the logarithms of the resources' ratios, weighted by the elasticities. The
dominant resource is the one with the largest elasticity (performance-model.md, C3). One ratio
rarely tells which that is, since a mixture of the slowest and the fastest grown resource looks like
one in between. What it does tell is which resources *cannot* dominate: those for which no mixture
with their own weight the largest gives that ratio. So

- a ratio admits the set of resources that may dominate; a measured one, those within its noise;
- it is *decided* if it rules any out: else no prediction could be wrong;
- a prediction is *right* if it admits nothing that the measurement rules out, and *contradicted* if
  all that it admits is ruled out. The same resource dominates by both for at least the first share
  of what is decided, as far as ratios can show, and at most for all but the second.

A prediction nearer than the noise is therefore right, one that is farther off is wrong as soon as
it changes what may dominate. Where a single resource differs this is the test of its elasticity
against one half. It assumes that both accelerators reach the same share of what they have; where
young software reaches less, a ratio speaks of that too, measured and predicted alike.

The reading that this one replaced named the resource whose ratio alone comes nearest. Measurements
themselves do not meet it: two of each open pair, with normal noise as large as repeats differ, name
the same for 82 to 84 % of the pairs of a served figure. Read as here, the one is right by the other
on 95 to 97 % of the decided pairs, about half of all (``python -m bench.model.repeats``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from poolwise.tables import AcceleratorRow

NONE = "None"
ALIKE = math.log(1.1)
"""Closer than this, two ratios of resources cannot be told apart by any job."""
FOUR_BITS = "fp4"
Cases = Mapping[str, float]
"""ln of the speed-up that each resource would give alone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A prediction held against a measurement."""

    measured: tuple[str, ...]
    """May dominate, by what was measured."""
    predicted: tuple[str, ...]
    is_decided: bool
    is_right: bool
    is_contradicted: bool
    """Whether no resource may dominate by both."""


def pure_cases(before: AcceleratorRow, after: AcceleratorRow, *, in_four_bits: bool) -> Cases:
    """Of the resources that differ, and of ``None``; like ones are merged."""
    cases = {NONE: 0.0}
    for name, ratio in _ratios(before, after, in_four_bits).items():
        twin = next((each for each, at in cases.items() if abs(at - ratio) < ALIKE), None)
        if twin is None:
            cases[name] = ratio
        elif twin != NONE:
            cases[f"{twin}/{name}"] = cases.pop(twin)
    return cases


def _ratios(before: AcceleratorRow, after: AcceleratorRow, in_four_bits: bool) -> dict[str, float]:
    old, new = before.peak_flops_per_second, after.peak_flops_per_second
    units = (FOUR_BITS, "bf16", "fp16") if in_four_bits else ("bf16", "fp16")
    unit = next((each for each in units if each in old and each in new), "fp32")
    bandwidth = after.memory_bandwidth_bytes_per_second / before.memory_bandwidth_bytes_per_second
    return {
        "Compute": math.log(new[unit] / old[unit]),
        "MemoryBandwidth": math.log(bandwidth),
        "Interconnect": math.log(after.link_bytes_per_second / before.link_bytes_per_second),
    }


def may_dominate(speedup: float, cases: Cases, noise: float = 0.0) -> tuple[str, ...]:
    """Resources that a speed-up admits; all three are logarithms.

    Beyond the largest and the smallest ratio something else changed as well (memory capacity,
    software): it counts as the nearest mixture.
    """
    within = min(max(speedup, min(cases.values())), max(cases.values()))
    reached = {name: _reached(name, cases) for name in cases}
    return tuple(
        name for name, (low, high) in reached.items() if low - noise <= within <= high + noise
    )


def _reached(name: str, cases: Cases) -> tuple[float, float]:
    """Least and most that mixtures with the largest weight on ``name`` give.

    Such weights are a polytope, and its corners share the weight evenly among it and any others.
    """
    others = [at for each, at in cases.items() if each != name]
    corners = [
        fmean((cases[name], *some))
        for count in range(len(others) + 1)
        for some in itertools.combinations(others, count)
    ]
    return min(corners), max(corners)


def verdict(measured: float, predicted: float, cases: Cases, noise: float) -> Verdict:
    """``noise``: how far two measurements of one ratio are apart, nine times in ten."""
    admitted, told = may_dominate(measured, cases, noise), may_dominate(predicted, cases)
    return Verdict(
        measured=admitted,
        predicted=told,
        is_decided=len(admitted) < len(cases),
        is_right=set(told) <= set(admitted),
        is_contradicted=set(told).isdisjoint(admitted),
    )
