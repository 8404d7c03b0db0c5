"""What fields of a sample are called in sentences: as in a spec, or in plain words, since each
engine has a name of its own for them.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "running": "the number of running requests",
    "waiting": "the number of waiting requests",
    "kv_cache_usage": "the share of the KV cache in use",
    "finished_requests": "the count of ended requests",
    "preemptions": "the count of preemptions",
    "prompt_tokens": "the count of prompt tokens",
    "begun_prompt_tokens": "the count of prompt tokens",
    "cached_prompt_tokens": "the count of prompt tokens found in the prefix cache",
    "generated_tokens": "the count of generated tokens",
    "ttft_seconds": "the histogram of TTFT",
    "inter_token_seconds": "the histogram of ITL",
    "tpot_seconds": "the histogram of TPOT",
    "e2e_seconds": "the histogram of E2E",
    "queue_seconds": "the histogram of waits in the queue",
    "prompt_lengths_tokens": "the histogram of prompt lengths",
    "answer_lengths_tokens": "the histogram of answer lengths",
}
"""By field of :class:`Sample`."""
