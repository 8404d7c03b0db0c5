"""The same engine told plainly: one step at a time, each sequence by itself, nothing skipped."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.sim.serving.costs import EngineLimits, IterationCosts, StepTable
from poolwise.sim.serving.requests import Requests


@dataclass
class One:
    """A request."""

    number: int
    prompt: int
    left: int
    computed: int = 0
    stored: int = 0
    """Tokens in the cache, once it decodes."""
    tokens: list[float] = field(default_factory=list)
    """When each was given."""

    @property
    def decodes(self) -> bool:
        """Its prompt is through."""
        return self.stored > 0


def run(requests: Requests, costs: IterationCosts, limits: EngineLimits) -> list[list[float]]:
    """Moments of all tokens of each request."""
    table = StepTable(costs, limits)
    everyone = [
        One(number, int(prompt), int(answer))
        for number, (prompt, answer) in enumerate(
            zip(requests.input_tokens, requests.output_tokens, strict=True)
        )
    ]
    coming, waiting, running, now = list(everyone), list[One](), list[One](), 0.0
    while coming or waiting or running:
        if not waiting and not running:
            now = max(now, requests.arrival_seconds[coming[0].number])
        while coming and requests.arrival_seconds[coming[0].number] <= now:
            waiting.append(coming.pop(0))
        now += _step(waiting, running, table, limits)
        for one in [one for one in running if one.computed == one.prompt and not one.decodes]:
            one.stored = one.prompt
            one.tokens.append(now)
            one.left -= 1
        _end(running, now)
    return [one.tokens for one in everyone]


def _step(waiting: list[One], running: list[One], table: StepTable, limits: EngineLimits) -> float:
    """What the next step takes; the decoding ones' tokens are noted by their ``stored``."""
    may_admit = True
    while any(one.decodes for one in running) and _blocks(running, limits) > limits.kv_blocks:
        stopped, may_admit = running.pop(), False
        if stopped.decodes:
            stopped.prompt = stopped.stored + 1
        stopped.stored = stopped.computed = 0
        waiting.insert(0, stopped)
    decoding = [one for one in running if one.decodes]
    left = limits.max_batched_tokens - len(decoding)
    rows, pairs, ended = len(decoding), 0.0, 0
    begun = [one for one in running if not one.decodes]
    while left > 0:
        if begun:
            one = begun.pop(0)
        elif may_admit and waiting and _admits(waiting[0], running, limits):
            one = waiting.pop(0)
            running.append(one)
        else:
            break
        chunk = min(left, one.prompt - one.computed)
        pairs += chunk * (one.computed + (chunk + 1) / 2)
        one.computed += chunk
        rows, left = rows + chunk, left - chunk
        ended += one.computed == one.prompt
    keys = sum(one.stored for one in decoding)
    for one in decoding:
        one.stored += 1
        one.left -= 1
        one.tokens.append(-1.0)
    return (
        table.tokens[rows]
        + table.sequences[len(decoding) + ended]
        + table.key_seconds * keys
        + table.prompt_key_seconds * pairs
    )


def _end(running: list[One], now: float) -> None:
    for one in list(running):
        if one.tokens and one.tokens[-1] < 0.0:
            one.tokens[-1] = now
        if one.decodes and one.left == 0:
            running.remove(one)


def _admits(one: One, running: list[One], limits: EngineLimits) -> bool:
    watermark = limits.watermark_blocks if running else 0
    needed = -(-one.prompt // limits.block_tokens)
    fits = _blocks(running, limits) + needed + watermark <= limits.kv_blocks
    return fits and len(running) < limits.max_num_seqs


def _blocks(running: list[One], limits: EngineLimits) -> int:
    """With one more token of each that decodes."""
    tokens = [one.stored + 1 if one.decodes else one.prompt for one in running]
    return sum(-(-each // limits.block_tokens) for each in tokens)
