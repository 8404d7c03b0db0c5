"""How long a scaling decision takes: ``python -m bench.scaling_speed``.

Services of very different requests, of four kinds of model, on one pool and on as many as the
operator offers a service, each of another accelerator. What drifts is the length of the requests,
so that every decision works out anew what a replica of each pool serves; decisions between which
nothing changes take a fraction. Processor time: the median and the longest of 40 looks. The bar:
20 ms.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator

from bench.many_accelerators import DENSE, LATENT, MIXTURE, SMALL, observed
from bench.placement_speed import CALIBRATION, NOW, TABLES
from poolwise.handlers.garbage import settle
from poolwise.model.presets import model
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target, Tokens
from poolwise.plan.cluster import decide as placed
from poolwise.plan.live.further import MOST_OFFERED
from poolwise.plan.pool import Pool as Nodes
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.service import Modelled, Pool, Service
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.settings import Settings

LOOKS, INTERVAL_SECONDS = 40, 15.0
REPLICAS = 4
LEAST_MEMORY_BYTES = 75e9
"""Of an accelerator: each of the models then fits one."""
REQUESTS = {
    "chat": (Tokens(300.0, 1200.0), Tokens(350.0, 900.0)),
    "summaries": (Tokens(4000.0, 16000.0), Tokens(150.0, 400.0)),
    "completion": (Tokens(1500.0, 6000.0), Tokens(40.0, 120.0)),
    "reasoning": (Tokens(200.0, 800.0), Tokens(3000.0, 12000.0)),
    "labels": (Tokens(20.0, 40.0), Tokens(5.0, 10.0)),
}
"""Prompts and answers."""
TARGETS = (
    Target(Metric.TTFT, 99.0, 2.0),
    Target(Metric.ITL, 99.0, 0.08),
    Target(Metric.E2E, 95.0, 60.0),
)
BOUNDS = (0.05, 1.0, 100_000.0, math.inf)


def main() -> None:
    """One line per model and kind of request."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    nodes = placed(observed(), TABLES, Settings(), CALIBRATION, NOW).pools
    several = [each for each in nodes if _is_large(each)][: 1 + MOST_OFFERED]
    _times_ms(scaled(asked(DENSE, *REQUESTS["chat"]), several))  # what a process learns once
    settle()
    for name in (DENSE, MIXTURE, LATENT, SMALL):
        for kind, (prompts, answers) in REQUESTS.items():
            work = asked(name, prompts, answers)
            told = (_told(scaled(work, several[:count])) for count in (1, len(several)))
            print(f"{name:18} {kind:10} 1 pool {next(told)}, {len(several)} pools {next(told)}")


def _is_large(nodes: Nodes) -> bool:
    machine = nodes.machine
    return machine is not None and machine.device.memory_bytes > LEAST_MEMORY_BYTES


def asked(name: str, prompts: Tokens, answers: Tokens) -> ServingWork:
    """Requests of these lengths for a model of the table."""
    row = TABLES.model(name)
    assert row is not None, "the models are in the table"
    return ServingWork(model(row), None, prompts, answers, 0.0, None, ())


def scaled(work: ServingWork, several: list[Nodes]) -> Service:
    """What has to be kept, on these pools."""
    return Service("service", TARGETS, tuple(_pools(work, several)), 1, 20)


def _pools(work: ServingWork, several: list[Nodes]) -> Iterator[Pool]:
    layout = ServingLayout(max_batched_tokens=2048, max_model_tokens=32768)
    for index, nodes in enumerate(several):
        assert nodes.machine is not None, "only those are chosen"
        modelled = Modelled(work, layout, nodes.machine, CALIBRATION)
        yield Pool(nodes.name, modelled, 60.0, 1.0 + index)


def _told(service: Service) -> str:
    times_ms = _times_ms(service)
    return f"{statistics.median(times_ms):5.1f} ms, at most {max(times_ms):5.1f}"


def _times_ms(service: Service) -> list[float]:
    memory, times_ms, counted = Memory(), list[float](), [0.0, 0.0, 0.0]
    for look in range(LOOKS):
        now = seen(service, look, counted)
        started = time.process_time()
        memory = decide(service, memory, now).memory
        times_ms.append(1e3 * (time.process_time() - started))
    return times_ms


def seen(service: Service, look: int, counted: list[float]) -> Seen:
    """Lengths that rise and fall, to four times as much; ``counted`` is what a replica has had of
    requests, of their prompts' tokens and of those of answers."""
    mix, now_seconds = service.first.predictor.prior_mix, INTERVAL_SECONDS * look
    requests, drift = 30.0 + 10.0 * (look % 5), 1.25 ** (look % 7)
    for at, each in enumerate((1.0, mix.prompt_tokens.mean, mix.answer_tokens.mean)):
        counted[at] += requests * each * (drift if at else 1.0)
    names = [f"replica-{index}" for index in range(REPLICAS)]
    ready = (ReplicaSeen(name, service.first.name, Phase.READY, -1000.0, -900.0) for name in names)
    samples = {name: _sample(name, now_seconds, *counted) for name in names}
    return Seen(now_seconds, tuple(ready), samples)


def _sample(
    name: str, now_seconds: float, requests: float, prompt_tokens: float, answer_tokens: float
) -> Sample:
    return Sample(
        replica=name,
        at_seconds=now_seconds,
        running=8.0,
        waiting=0.0,
        kv_cache_usage=0.2,
        finished_requests=requests,
        preemptions=0.0,
        prompt_tokens=prompt_tokens,
        begun_prompt_tokens=prompt_tokens,
        cached_prompt_tokens=0.0,
        generated_tokens=answer_tokens,
        ttft_seconds=_all_in(0, requests, 0.04 * requests),
        inter_token_seconds=_all_in(0, answer_tokens, 0.03 * answer_tokens),
        e2e_seconds=_all_in(2, requests, 4.0 * requests),
        prompt_lengths_tokens=_all_in(2, requests, prompt_tokens),
        answer_lengths_tokens=_all_in(2, requests, answer_tokens),
    )


def _all_in(bucket: int, count: float, total: float) -> Histogram:
    """All observations in one bucket."""
    told = tuple(count if at >= bucket else 0.0 for at in range(len(BOUNDS)))
    return Histogram(BOUNDS, told, total)


if __name__ == "__main__":
    main()
