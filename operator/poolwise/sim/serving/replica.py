"""One engine: a queue, a batch that changes at the end of a step, and steps that are skipped.

Each step carries one token of every decoding sequence, then prompts in order of arrival, in chunks,
up to the token budget. A prompt is admitted when the batch has a place and the cache has blocks for
all of it beside the watermark. When a decoding sequence finds no block, the one admitted last gives
up all of its own, goes to the front of the queue and is computed again: prompt and answer so far.

Between two changes of the batch the steps are alike but for the keys they read, which grow by one
token for each sequence: the j-th of a phase takes ``a + d * j`` seconds, so any number of them has
a closed form, and the step in which a moment falls is the root of a quadratic. An arrival ends the
phase with the step that runs; the next one is planned at once, and takes in who comes before it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

from poolwise.sim.serving.cache import Cache
from poolwise.sim.serving.costs import EngineLimits, StepTable
from poolwise.sim.serving.log import Log
from poolwise.sim.serving.metrics import Metrics
from poolwise.sim.serving.sequence import Sequence

NEVER = math.inf


class Replica:
    """``next_seconds`` is when its batch may change; :meth:`step` must be called then."""

    __slots__ = ("_budget", "_cache", "_ending", "_ends", "_first_seconds", "_log", "_longest",
                 "_may_admit", "_partial", "_places", "_prompt_keys", "_prompt_rows", "_running",
                 "_slope_seconds", "_started_seconds", "_step", "_steps", "_table", "_waiting",
                 "_watermark", "metrics", "next_seconds", "outstanding")  # fmt: skip

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
        self._prompt_rows = 0
        """Tokens of prompts in this step."""
        self._prompt_keys = 0.0
        """Pairs of tokens that attend in them."""
        self._may_admit = True
        """False in a step that had to stop a sequence."""
        self._step = 0
        """Iterations before the present phase."""
        self._steps = 0
        """Of the present phase; 0 while idle."""
        self._started_seconds = 0.0
        """When the present phase begins."""
        self._first_seconds = 0.0
        """Of its first iteration."""
        self._slope_seconds = 0.0
        """By which each of its iterations is longer than the one before."""
        self.next_seconds = NEVER
        self.outstanding = 0
        """Requests here, those that wait included."""
        self.metrics = Metrics(log, limits.kv_tokens)

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
        used = self._cache.used_after(self._steps_done_by(now_seconds))
        return min(used / self._cache.blocks, 1.0)

    def generated_by(self, now_seconds: float) -> int:
        """Tokens until now, those of the present phase included."""
        return self.metrics.generated + self._steps_done_by(now_seconds) * self._cache.sequences

    def accept(self, number: int, now_seconds: float) -> bool:
        """A request comes; False when its tokens fit no cache of this size: it is refused."""
        log, waiting = self._log, self._waiting
        prompt, answer = log.inputs[number], log.outputs[number]
        if prompt + answer > self._longest:
            return False
        self.outstanding += 1
        waiting.append(Sequence(number, prompt, log.cached[number], answer))
        if not self._steps:
            self._plan(now_seconds)
        elif len(waiting) > 1 or len(self._running) >= self._places:
            pass  # it could not join: those before it cannot
        elif self._prompt_rows:
            if now_seconds <= self._started_seconds:
                self._take_prompts()
                self._price()
        else:
            steps = self._steps_by(now_seconds)
            if steps < self._steps:
                self._steps, now = steps, self._started_seconds + self._seconds_of(steps)
                self._pass_phase()
                self._plan(now)
        return True

    def step(self) -> None:
        """The present phase is over: count it, let go what is done, and plan the next."""
        now = self.next_seconds
        self._pass_phase()
        ends, step = self._ends, self._step
        while ends and ends[0][0] <= step:
            at, _, sequence = heapq.heappop(ends)
            if sequence.ends_at_step == at:
                self._cache.leave(sequence.prompt_tokens + sequence.left_tokens, sequence.phase)
                sequence.ends_at_step = -1
                self._finish(sequence, now)
        if self._ending:
            self._begin_decoding(now)
        self._plan(now)

    def _pass_phase(self) -> None:
        """All decoding sequences have one token more for each of its iterations."""
        steps, cache = self._steps, self._cache
        self._step += steps
        sequences = cache.sequences
        if sequences:
            metrics = self.metrics
            metrics.generated += steps * sequences
            metrics.gaps.observe_line(self._first_seconds, self._slope_seconds, steps, sequences)
            cache.grow(steps)

    def _begin_decoding(self, now: float) -> None:
        """The step that ended some prompts gave their next token as well."""
        cache, step, metrics = self._cache, self._step, self.metrics
        metrics.generated += len(self._ending)
        for sequence in self._ending:
            cache.reserve(-cache.needed(sequence.prompt_tokens))
            if sequence.was_stopped:
                metrics.gaps.observe(now - sequence.token_seconds)
            else:
                self._log.first_tokens[sequence.number] = now + self._table.request_seconds
                metrics.began.append(sequence.number)
            sequence.left_tokens -= 1
            if sequence.left_tokens:
                sequence.phase = cache.join(sequence.prompt_tokens)
                sequence.ends_at_step = ends_at = step + sequence.left_tokens
                heapq.heappush(self._ends, (ends_at, sequence.number, sequence))
            else:
                self._finish(sequence, now)
        self._ending.clear()

    def _finish(self, sequence: Sequence, now: float) -> None:
        log, number = self._log, sequence.number
        del self._running[number]
        self.outstanding -= 1
        log.finished[number] = now + self._table.request_seconds
        self.metrics.ended.append(number)

    def _plan(self, now: float) -> None:
        """What the next phase carries, and when it is over."""
        cache = self._cache
        self._started_seconds = now
        self._may_admit, self._prompt_rows, self._prompt_keys = True, 0, 0.0
        if cache.sequences and not cache.fits(1):
            self._make_room(now)
        if self._partial is not None or (self._waiting and self._may_admit):
            self._take_prompts()
        if self._prompt_rows:
            self._price()
            return
        sequences = cache.sequences
        if not sequences:
            self._steps, self.next_seconds = 0, NEVER
            return
        table, ends = self._table, self._ends
        while ends[0][2].ends_at_step != ends[0][0]:
            heapq.heappop(ends)
        steps = self._steps = cache.steps_that_fit(ends[0][0] - self._step)
        slope = self._slope_seconds = table.key_seconds * sequences
        first = table.decode[sequences] + table.key_seconds * cache.context_tokens
        self._first_seconds = first
        self.next_seconds = now + steps * (first + slope * (steps - 1) / 2.0)

    def _price(self) -> None:
        """A step that carries prompts."""
        table, cache = self._table, self._cache
        sequences = cache.sequences
        self._steps, self._slope_seconds = 1, 0.0
        self._first_seconds = (
            table.tokens[sequences + self._prompt_rows]
            + table.sequences[sequences + len(self._ending)]
            + table.key_seconds * cache.context_tokens
            + table.prompt_key_seconds * self._prompt_keys
        )
        self.next_seconds = self._started_seconds + self._first_seconds

    def _make_room(self, now: float) -> None:
        """Stop the last admitted until one more step fits."""
        self._may_admit = False
        cache = self._cache
        while cache.sequences and not cache.fits(1):
            number, sequence = self._running.popitem()
            if sequence is self._partial:
                self._partial = None
                cache.reserve(-cache.needed(sequence.prompt_tokens))
            else:
                left = sequence.ends_at_step - self._step
                tokens = sequence.prompt_tokens + sequence.left_tokens - left
                cache.leave(tokens, sequence.phase)
                sequence.stop(tokens, left, now)
            sequence.computed_tokens = sequence.cached_tokens
            self._waiting.appendleft(sequence)
            self._log.preemptions[number] += 1
            self.metrics.preemptions += 1

    def _take_prompts(self) -> None:
        """Fill the next step with prompts, the one that is begun first."""
        left = self._budget - self._cache.sequences - self._prompt_rows
        while left > 0 and (self._partial or self._waiting):
            sequence = self._partial or self._admitted()
            if sequence is None:
                break
            done, prompt = sequence.computed_tokens, sequence.prompt_tokens
            chunk = min(left, prompt - done)
            self._prompt_keys += chunk * (done + (chunk + 1) / 2)
            self._prompt_rows += chunk
            left -= chunk
            sequence.computed_tokens = done + chunk
            if done + chunk == prompt:
                self._partial = None
                self._ending.append(sequence)
            else:
                self._partial = sequence

    def _admitted(self) -> Sequence | None:
        """The head of the queue, if the batch and the cache have room for all of its prompt."""
        waiting, running, cache = self._waiting, self._running, self._cache
        if not self._may_admit or len(running) >= self._places:
            return None
        sequence = waiting[0]
        blocks = cache.needed(sequence.prompt_tokens)
        if not cache.fits(1, blocks + (self._watermark if running else 0)):
            return None
        waiting.popleft()
        cache.reserve(blocks)
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

    def _steps_done_by(self, now: float) -> int:
        return self._steps_by(now) - 1 if self._steps > 1 else 0
