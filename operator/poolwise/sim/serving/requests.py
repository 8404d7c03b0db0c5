"""A stream of requests as arrays, and what became of each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Requests:
    """In order of arrival; one entry of each array is a request."""

    arrival_seconds: Floats
    input_tokens: Integers
    output_tokens: Integers
    cached_tokens: Integers
    """Of the prompt, found in the prefix cache of any replica."""

    def __post_init__(self) -> None:
        sizes = {len(self.arrival_seconds), len(self.input_tokens), len(self.output_tokens)}
        if sizes != {len(self.cached_tokens)}:
            raise ValueError(f"arrays of requests differ in length: {sorted(sizes)}")
        if len(self) and np.any(np.diff(self.arrival_seconds) < 0.0):
            raise ValueError("requests are in order of arrival")
        if len(self) and min(self.input_tokens.min(), self.output_tokens.min()) < 1:
            raise ValueError("a request has one token of prompt and one of answer at least")
        if np.any(self.cached_tokens >= self.input_tokens) or np.any(self.cached_tokens < 0):
            raise ValueError("the last token of a prompt is always computed")

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    @staticmethod
    def of(
        arrival_seconds: NDArray[np.floating],
        input_tokens: NDArray[np.integer],
        output_tokens: NDArray[np.integer],
        cached_tokens: NDArray[np.integer] | None = None,
    ) -> Requests:
        """From arrays in any order; no prefix is cached unless told."""
        order = np.argsort(arrival_seconds, kind="stable")
        cached = np.zeros(len(order), np.int64) if cached_tokens is None else cached_tokens
        return Requests(
            np.asarray(arrival_seconds, np.float64)[order],
            np.asarray(input_tokens, np.int64)[order],
            np.asarray(output_tokens, np.int64)[order],
            np.asarray(cached, np.int64)[order],
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of each request; times count from the start of the trace.

    NaN: not yet, or never, since its tokens fit no replica's cache.
    """

    first_token_seconds: Floats
    finished_seconds: Floats
    preemptions: Integers

    def ttft_seconds(self, requests: Requests) -> Floats:
        """From arrival to the first token."""
        found: Floats = self.first_token_seconds - requests.arrival_seconds
        return found

    def tpot_seconds(self, requests: Requests) -> Floats:
        """Mean gap between a request's tokens; 0 for an answer of one token."""
        gaps = np.maximum(requests.output_tokens - 1, 1)
        found: Floats = (self.finished_seconds - self.first_token_seconds) / gaps
        return found

    def digest(self) -> str:
        """The same for the same run, to the last bit."""
        found = hashlib.sha256()
        for column in (self.first_token_seconds, self.finished_seconds, self.preemptions):
            found.update(column.tobytes())
        return found.hexdigest()
