"""What one request takes of a replica: measured on a small fleet under the trace's own lengths.

The capacity of a replica is the rate at which requests, arriving by chance (Poisson) before a few
replicas, just meet both targets: the wanted share (99 %) of those that meet them where they are
alone, since no fleet answers a prompt in time that one replica reads for longer. However wide the
targets are, it is at most what a replica answers while a queue never ends: beyond that rate a queue
grows for as long as requests come, and only the end of the measurement keeps them in time. A
request's share of the capacity goes by its prompt's own seconds and by its tokens, each as dear as
at that load.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.autoscale.engine import Engine
from poolwise.sim.serving.costs import IterationCosts, StepTable
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Answers, Floats, Requests
from poolwise.sim.serving.router import LeastOutstanding

REPLICAS = 3
REQUESTS = 6000
BISECTIONS = 9
ALONE = 0.01
"""Of the rate that products alone would allow: requests hardly ever meet."""
MIDDLE = (0.25, 0.75)
"""Of the work of requests that all come at once: before it a batch fills, after it one runs dry."""
CHANCE = 1.05
"""What is served then differs by so much from draw to draw of the requests."""
ATTAINMENT = 0.99
"""Of requests that shall meet both targets, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Of each request; the second is of the mean gap between its tokens."""

    ttft_seconds: float = 5.0
    tpot_seconds: float = 0.1
    attainment: float = ATTAINMENT
    """Share of the requests that shall meet both."""

    def met(self, requests: Requests, answers: Answers) -> tuple[NDArray[np.bool_], ...]:
        """Which requests met the first, and which the second; one without an answer neither."""
        with np.errstate(invalid="ignore"):
            first = answers.ttft_seconds(requests) <= self.ttft_seconds
            gaps = answers.tpot_seconds(requests) <= self.tpot_seconds
        return first, gaps


@dataclass(frozen=True, slots=True)
class Work:
    """How long one replica, loaded as far as the targets allow, is taken up by a request."""

    prompt_token_seconds: float
    prompt_key_seconds: float
    answer_token_seconds: float
    gap_seconds: float
    """Between two tokens of an answer, on a full engine: its work is spread over that."""
    requests_per_second: float
    """Of one replica, of the lengths that it was measured with."""

    def replica_seconds(self, requests: Requests) -> Floats:
        """Of each request."""
        found: Floats = self._prompts(requests) + self._answers(requests)
        return found

    def needed_replicas(self, requests: Requests, bin_seconds: float) -> Floats:
        """Of a fluid, by bins: prompts as they arrive, answers over the time that they take."""
        arrivals = requests.arrival_seconds
        bins = int(arrivals[-1] / bin_seconds) + 1
        edges = np.arange(bins + 1, dtype=np.float64) * bin_seconds
        prompts = np.bincount((arrivals / bin_seconds).astype(np.int64), self._prompts(requests))
        ends = np.sort(arrivals + requests.output_tokens * self.gap_seconds)
        in_flight = np.diff(_passed(arrivals, edges) - _passed(ends, edges))
        tokens = in_flight * (self.answer_token_seconds / self.gap_seconds)
        found: Floats = np.maximum(prompts + tokens, 0.0) / bin_seconds  # sums of floats
        return found

    def _prompts(self, requests: Requests) -> Floats:
        computed = requests.input_tokens - requests.cached_tokens
        pairs = (requests.input_tokens**2 - requests.cached_tokens**2) / 2
        found: Floats = self.prompt_token_seconds * computed + self.prompt_key_seconds * pairs
        return found

    def _answers(self, requests: Requests) -> Floats:
        return self.answer_token_seconds * requests.output_tokens.astype(np.float64)


def _passed(moments: Floats, edges: Floats) -> Floats:
    """Seconds since all moments before each edge, summed; the moments are sorted."""
    before = np.searchsorted(moments, edges)
    sums = np.concatenate(([0.0], np.cumsum(moments)))
    return np.asarray(before * edges - sums[before], np.float64)


class OutOfReach(ValueError):
    """Targets that no number of replicas meets; the sentence tells them."""


def measured(engine: Engine, requests: Requests, targets: Targets, seed: int = 0) -> Work:
    """Work of requests of these lengths on this engine; by bisection over the rate.

    Raises :class:`OutOfReach`.
    """
    draw = np.random.default_rng(seed)
    picked = draw.integers(0, len(requests), REQUESTS)
    gaps = draw.exponential(1.0, REQUESTS)
    guess = 1.0 / _product_seconds(engine.costs, requests, picked)

    def attained(rate: float) -> float:
        return _attained(engine, requests, picked, gaps / rate / REPLICAS, targets)

    least = targets.attainment * attained(guess * ALONE)
    if least <= 0.0:
        raise OutOfReach(
            f"no request meets both targets even alone on an idle replica: first token within "
            f"{targets.ttft_seconds:g} s, then {targets.tpot_seconds:g} s between tokens"
        )
    most = _served_per_second(engine, requests, picked)
    low, high = guess * ALONE, guess
    while high < most and attained(high) >= least:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if attained(middle) >= least else (low, middle)
    return _work(engine, requests, picked, low if low <= CHANCE * most else most)


def _product_seconds(
    costs: IterationCosts, requests: Requests, picked: NDArray[np.integer]
) -> float:
    """Mean seconds of a request if only products took time: a first guess."""
    tokens = requests.input_tokens[picked] + requests.output_tokens[picked]
    return float(tokens.mean()) * _token_seconds(costs)


def _token_seconds(costs: IterationCosts) -> float:
    """One more token in a large step."""
    (low, high), (first, last) = costs.tokens.counts[-2:], costs.tokens.seconds[-2:]
    return (last - first) / (high - low)


def _attained(
    engine: Engine,
    requests: Requests,
    picked: NDArray[np.integer],
    gaps: Floats,
    targets: Targets,
) -> float:
    """Of the second half, when the fleet has filled."""
    arriving = _arriving(requests, picked, np.cumsum(gaps))
    first, tokens = targets.met(arriving, _answered(engine, arriving, REPLICAS))
    return float((first & tokens)[len(arriving) // 2 :].mean())


def _served_per_second(engine: Engine, requests: Requests, picked: NDArray[np.integer]) -> float:
    """By one replica, whose queue never ends.

    Counted by their work: short answers overtake long ones, which are what a full cache waits for.
    """
    arriving = _arriving(requests, picked, np.zeros(len(picked)))
    ends = _answered(engine, arriving, 1).finished_seconds
    order = np.argsort(ends)[: int(np.isfinite(ends).sum())]
    done = np.cumsum(_tight(engine, requests, 1.0).replica_seconds(arriving)[order])
    first, last = np.interp(MIDDLE, done / done[-1], ends[order])
    if last <= first:  # all in one step
        return float(len(order) / ends[order[-1]])
    return float(len(order) * (MIDDLE[1] - MIDDLE[0]) / (last - first))


def _arriving(requests: Requests, picked: NDArray[np.integer], arrivals: Floats) -> Requests:
    return Requests(
        arrivals,
        requests.input_tokens[picked],
        requests.output_tokens[picked],
        requests.cached_tokens[picked],
    )


def _answered(engine: Engine, arriving: Requests, replicas: int) -> Answers:
    fleet = Fleet(arriving, engine.costs, engine.limits, LeastOutstanding())
    fleet.request(replicas, 0.0)
    fleet.finish()
    return fleet.answers()


def _work(engine: Engine, requests: Requests, picked: NDArray[np.integer], rate: float) -> Work:
    """Prompts and tokens by what they take of a full engine, and both with the same headroom."""
    tight = _tight(engine, requests, rate)
    headroom = 1.0 / rate / float(tight.replica_seconds(requests)[picked].mean())
    return replace(
        tight,
        prompt_token_seconds=tight.prompt_token_seconds * headroom,
        prompt_key_seconds=tight.prompt_key_seconds * headroom,
        answer_token_seconds=tight.answer_token_seconds * headroom,
    )


def _tight(engine: Engine, requests: Requests, rate: float) -> Work:
    """Without any headroom."""
    costs = engine.costs
    step, batch = _full_step(engine, requests)
    return Work(_token_seconds(costs), costs.prompt_key_seconds, step / batch, step, rate)


def _full_step(engine: Engine, requests: Requests) -> tuple[float, int]:
    """Seconds of a step with as many sequences as the cache holds, and how many these are."""
    limits, outputs = engine.limits, requests.output_tokens
    contexts = requests.input_tokens + outputs / 2.0
    context = float((contexts * outputs).sum() / outputs.sum())
    batch = min(max(int(limits.kv_tokens / context), 1), limits.max_num_seqs)
    table = StepTable(engine.costs, limits)
    return table.decode[batch] + table.key_seconds * context * batch, batch
