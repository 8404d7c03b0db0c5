"""What measurements on other pools tell of one where little or nothing was measured.

Of the part of an error that stays for a model on a pool (:mod:`.correction`), some is common to all
pools: a description of the work that is off, an engine that is slow everywhere. With ``C`` the
variance of that, ``D`` that of the pool's own, ``E`` of what changes from run to run, all as shares
of a prediction's variance, ``w`` measurements of median ``m`` on each other pool q give ::

    C + D = P,  E = 1 - P,  C = P * COMMON
    v(q)  = D + E / w(q)
    V     = 1 / (1 / C + sum 1 / v(q)),   mean = V * sum m(q) / v(q)

the normal distribution N(mean, V + D) that the pool's own measurements then begin from, in place of
N(0, P). Without others it is that very one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median

from poolwise.model.correction import LASTING, Correction, Phase, Prior
from poolwise.model.prediction import Measured
from poolwise.model.ranges import OWN_SHARE

COMMON: Mapping[Phase, float] = {Phase.TRAINING: 1.0 - OWN_SHARE[Phase.TRAINING]}
"""Of what stays. Sixty pairs of accelerators with training runs of one model and framework agree:
their medians share 0.36 of the variance, which makes 0.6 of what stays (``bench.correction``);
those of services share nothing."""


def prior(
    others: Iterable[Correction], phase: Phase, now_seconds: float, lasting: float | None = None
) -> Prior:
    """What a pool's measurements begin from.

    :param others: of the same model and phase on other pools.
    :param lasting: ``P``, where it is not that of the phase.
    """
    stays = LASTING[phase] if lasting is None else lasting
    common = stays * COMMON.get(phase, 0.0)
    seen = [(each, *each.seen(now_seconds)) for each in others]
    seen = [told for told in seen if told[2] > 0.0]
    if not seen or common <= 0.0:
        return Prior(variance=stays)
    own = stays - common
    spreads = [own + (1.0 - stays) / weight for _, _, weight in seen]
    left = 1.0 / (1.0 / common + sum(1.0 / spread for spread in spreads))
    middles = [middle for _, middle, _ in seen]
    mean = left * sum(middle / spread for middle, spread in zip(middles, spreads, strict=True))
    samples = sum(len(each.samples) for each, _, _ in seen)
    return Prior(mean, left + own, Measured(math.exp(median(middles)), samples, elsewhere=True))
