"""One engine: a queue, a batch that changes at the end of a step, and steps that are skipped.

Each step carries one token of every decoding sequence, then prompts in order of arrival, in chunks,
up to the token budget. A prompt is admitted when the batch has a place and the cache has blocks for
all of it beside the watermark. When a decoding sequence finds no block, the one admitted last gives
up all of its own, goes to the front of the queue and is computed again: prompt and answer so far.

Between two changes of the batch the steps are alike but for the keys they read, which grow by one
token for each sequence: the j-th of a phase takes ``a + d * j`` seconds, so any number of them has
a closed form, and the step in which a moment falls is the root of a quadratic.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

from poolwise.sim.serving.cache import Cache
from poolwise.sim.serving.costs import EngineLimits, StepTable
from poolwise.sim.serving.log import Log
from poolwise.sim.serving.metrics import Metrics

NEVER = math.inf


class Sequence:
    """One request inside an engine."""

    __slots__ = ("cached_tokens", "computed_tokens", "ends_at_step", "left_tokens", "number",
                 "phase", "prompt_tokens", "token_seconds")  # fmt: skip

    def __init__(self, number: int, prompt_tokens: int, cached_tokens: int, tokens: int) -> None:
        self.number = number
        self.prompt_tokens = prompt_tokens
        """To be computed before its next token: after a preemption, its answer so far as well."""
        self.cached_tokens = cached_tokens
        self.computed_tokens = cached_tokens
        self.left_tokens = tokens
        """Of the answer, when its prompt is through."""
        self.ends_at_step = -1
        """While it decodes."""
        self.phase = 0
        self.token_seconds = math.nan
        """When it was given its last token before it was stopped; NaN: it never was."""


class Replica:
    """``next_seconds`` is when its batch may change; :meth:`step` must be called then."""

    __slots__ = ("_budget", "_cache", "_ending", "_ends", "_first_seconds", "_log", "_longest",
                 "_partial", "_places", "_running", "_slope_seconds", "_started_seconds", "_step",
                 "_steps", "_table", "_waiting", "_watermark", "metrics", "next_seconds",
                 "outstanding", "outstanding_tokens")  # fmt: skip

    def __init__(self, table: StepTable, limits: EngineLimits, log: Log) -> None:
        self._table, self._log = table, log
        self._budget, self._places = limits.max_batched_tokens, limits.max_num_seqs
        self._watermark, self._longest = limits.watermark_blocks, limits.kv_tokens
        self._cache = Cache(limits.kv_blocks, limits.block_tokens)
        self._waiting: deque[Sequence] = deque()
        self._running: dict[int, Sequence] = {}
        """In order of admission, those whose prompt is not through included."""
        self._ends: list[tuple[int, int, Sequence]] = []
        """Heap of the decoding ones by their last step; stopped ones stay until they surface."""
        self._partial: Sequence | None = None
        self._ending: list[Sequence] = []
        """Prompts that are through at the end of this step."""
        self._step = 0
        """Iterations until the present phase."""
        self._steps = 0
        """Of the present phase; 0 while idle."""
        self._started_seconds = 0.0
        self._first_seconds = 0.0
        """Of its first iteration."""
        self._slope_seconds = 0.0
        """By which each of its iterations is longer than the one before."""
        self.next_seconds = NEVER
        self.outstanding = 0
        """Requests here, those that wait included."""
        self.outstanding_tokens = 0
        """Prompts and answers of these, whole."""
        self.metrics = Metrics(limits.kv_tokens)

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests before it."""
        return len(self._waiting)

    def kv_cache_usage(self, now_seconds: float) -> float:
        """Share of the blocks in use."""
        done = self._steps_by(now_seconds) - 1 if self._steps > 1 else 0
        return min(self._cache.used_after(max(done, 0)) / self._cache.blocks, 1.0)

    def generated_by(self, now_seconds: float) -> int:
        """Tokens until now, those of the present phase included."""
        done = self._steps_by(now_seconds) - 1 if self._steps > 1 else 0
        return self.metrics.generated + max(done, 0) * self._cache.sequences

    def accept(self, number: int, now_seconds: float) -> bool:
        """A request comes; False when its tokens fit no cache of this size: it is refused."""
        log = self._log
        prompt, answer = log.inputs[number], log.outputs[number]
        if prompt + answer > self._longest:
            return False
        self.outstanding += 1
        self.outstanding_tokens += prompt + answer
        self._waiting.append(Sequence(number, prompt, log.cached[number], answer))
        if not self._steps:
            self._plan(now_seconds)
        elif self._steps > 1 and len(self._waiting) == 1 and len(self._running) < self._places:
            self._cut(now_seconds)
        return True

    def step(self) -> None:
        """The present phase is over: count it, let go what is done, and plan the next."""
        now, cache, steps = self.next_seconds, self._cache, self._steps
        if cache.sequences:
            self.metrics.generated += steps * cache.sequences
            self.metrics.gaps.observe_line(
                self._first_seconds, self._slope_seconds, steps, cache.sequences
            )
            cache.grow(steps)
        self._step += steps
        self._finish_those_done(now)
        if self._ending:
            self._begin_decoding(now)
        self._plan(now)

    def _finish_those_done(self, now: float) -> None:
        ends, step = self._ends, self._step
        while ends and ends[0][0] <= step:
            at, _, sequence = heapq.heappop(ends)
            if sequence.ends_at_step == at:
                self._cache.leave(self._tokens(sequence), sequence.phase)
                sequence.ends_at_step = -1
                self._finish(sequence, now)

    def _tokens(self, sequence: Sequence) -> int:
        """Context of a decoding one."""
        return sequence.prompt_tokens + sequence.left_tokens - (sequence.ends_at_step - self._step)

    def _begin_decoding(self, now: float) -> None:
        """The step that ended some prompts gave their next token as well."""
        cache = self._cache
        for sequence in self._ending:
            cache.prompt_blocks -= cache.needed(sequence.prompt_tokens)
            self._count_prompt(sequence, now)
            sequence.left_tokens -= 1
            if not sequence.left_tokens:
                self._finish(sequence, now)
                continue
            sequence.phase = cache.join(sequence.prompt_tokens)
            sequence.ends_at_step = self._step + sequence.left_tokens
            heapq.heappush(self._ends, (sequence.ends_at_step, sequence.number, sequence))
        self._ending.clear()

    def _count_prompt(self, sequence: Sequence, now: float) -> None:
        metrics, log, number = self.metrics, self._log, sequence.number
        metrics.generated += 1
        if sequence.token_seconds == sequence.token_seconds:  # stopped before: a gap, not a start
            metrics.gaps.observe(now - sequence.token_seconds)
            return
        told = now + self._table.request_seconds
        log.first_tokens[number] = told
        metrics.prompt_tokens += log.inputs[number]
        metrics.cached_prompt_tokens += log.cached[number]
        metrics.ttft.observe(told - log.arrivals[number])

    def _finish(self, sequence: Sequence, now: float) -> None:
        log, metrics, number = self._log, self.metrics, sequence.number
        del self._running[number]
        prompt, answer = log.inputs[number], log.outputs[number]
        self.outstanding -= 1
        self.outstanding_tokens -= prompt + answer
        told = now + self._table.request_seconds
        log.finished[number] = told
        metrics.finished += 1
        metrics.e2e.observe(told - log.arrivals[number])
        if answer > 1:
            metrics.tpot.observe((told - log.first_tokens[number]) / (answer - 1))
        metrics.prompt_lengths.observe(prompt)
        metrics.answer_lengths.observe(answer)

    def _plan(self, now: float) -> None:
        """What the next phase carries, and when it is over."""
        cache, table = self._cache, self._table
        has_room = self._make_room(now)
        rows, prompt_keys = cache.sequences, 0.0
        if self._partial is not None or (self._waiting and has_room):
            prompt_rows, prompt_keys = self._take_prompts(has_room)
            rows += prompt_rows
        self._started_seconds = now
        keys_seconds = table.key_seconds * cache.context_tokens
        if rows > cache.sequences:
            given = cache.sequences + len(self._ending)
            seconds = table.tokens[rows] + table.sequences[given] + keys_seconds
            self._steps, self._slope_seconds = 1, 0.0
            self._first_seconds = seconds + table.prompt_key_seconds * prompt_keys
            self.next_seconds = now + self._first_seconds
        elif rows:
            self._first_seconds = table.decode[rows] + keys_seconds
            self._slope_seconds = table.key_seconds * rows
            self._steps = cache.steps_that_fit(self._steps_to_next_end())
            self.next_seconds = now + self._seconds_of(self._steps)
        else:
            self._steps, self.next_seconds = 0, NEVER

    def _steps_to_next_end(self) -> int:
        ends = self._ends
        while ends[0][2].ends_at_step != ends[0][0]:
            heapq.heappop(ends)
        return ends[0][0] - self._step

    def _make_room(self, now: float) -> bool:
        """Stop the last admitted until one more step fits; whether none had to be."""
        cache = self._cache
        had_room = True
        while cache.sequences and not cache.fits(1):
            self._preempt(now)
            had_room = False
        return had_room

    def _preempt(self, now: float) -> None:
        """Its blocks are freed, and it starts again: its answer so far is part of its prompt."""
        number, sequence = self._running.popitem()
        cache = self._cache
        if sequence is self._partial:
            self._partial = None
            cache.prompt_blocks -= cache.needed(sequence.prompt_tokens)
        else:
            tokens = self._tokens(sequence)
            cache.leave(tokens, sequence.phase)
            sequence.left_tokens = sequence.ends_at_step - self._step
            sequence.prompt_tokens = tokens + 1  # its last token was not stored yet
            sequence.ends_at_step = -1
            sequence.token_seconds = now
        sequence.computed_tokens = sequence.cached_tokens
        self._waiting.appendleft(sequence)
        self._log.preemptions[number] += 1
        self.metrics.preemptions += 1

    def _take_prompts(self, may_admit: bool) -> tuple[int, float]:
        """Tokens of prompts in the next step, and the pairs of tokens that attend in them."""
        left, keys = self._budget - self._cache.sequences, 0.0
        budget = left
        while left > 0:
            sequence = self._partial or (self._admit() if may_admit else None)
            if sequence is None:
                break
            done, prompt = sequence.computed_tokens, sequence.prompt_tokens
            chunk = min(left, prompt - done)
            keys += chunk * (done + (chunk + 1) / 2)
            left -= chunk
            sequence.computed_tokens = done + chunk
            if done + chunk == prompt:
                self._partial = None
                self._ending.append(sequence)
            else:
                self._partial = sequence
        return budget - left, keys

    def _admit(self) -> Sequence | None:
        """The head of the queue, if the batch and the cache have room for all of its prompt."""
        waiting, running, cache = self._waiting, self._running, self._cache
        if not waiting or len(running) >= self._places:
            return None
        sequence = waiting[0]
        blocks = cache.needed(sequence.prompt_tokens)
        beside = self._watermark if running else 0
        if not cache.fits(1, blocks + beside):
            return None
        waiting.popleft()
        cache.prompt_blocks += blocks
        running[sequence.number] = sequence
        return sequence

    def _seconds_of(self, steps: int) -> float:
        """The first so many iterations of the present phase."""
        return steps * (self._first_seconds + self._slope_seconds * (steps - 1) / 2.0)

    def _steps_by(self, now: float) -> int:
        """Iterations of the present phase until the one that runs now is over."""
        passed, slope = now - self._started_seconds, self._slope_seconds
        if passed <= 0.0:
            return 1
        if slope <= 0.0:
            steps = math.ceil(passed / self._first_seconds)
        else:
            half = self._first_seconds - slope / 2.0
            steps = math.ceil((math.sqrt(half * half + 2.0 * slope * passed) - half) / slope)
        return min(max(steps, 1), self._steps)

    def _cut(self, now: float) -> None:
        """End the phase with the iteration that runs now: somebody may join after it."""
        self._steps = self._steps_by(now)
        self.next_seconds = self._started_seconds + self._seconds_of(self._steps)
