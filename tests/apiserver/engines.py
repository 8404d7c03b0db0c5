"""Engines without accelerators: real HTTP servers where the fake pods' addresses are.

The control plane of these tests gives pods addresses of 127.0.0.0/8, so one listener on all of them
answers for every pod, and knows by the address which one is asked. Each pod counts its share of the
load since it was first asked, as vLLM would.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TTFT_BOUNDS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0)
ITL_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.5)
PROMPT_TOKENS, ANSWER_TOKENS = 512, 256
RECENT_SECONDS = 5.0
"""A pod that was not asked for so long is gone, and takes no share of the load."""

Answer = Callable[[], tuple[int, str, str]]
"""Status, content type and body of a pod that does not tell the truth."""


class Engines:
    """All pods of one service; ``requests_per_second`` is what arrives at it."""

    def __init__(self) -> None:
        self.requests_per_second = 0.0
        self.ttft_seconds, self.itl_seconds = 0.09, 0.02
        self.lies: dict[str, Answer] = {}
        """By address, instead of metrics; ``*`` is for all."""
        self.port = 0
        self._asked: dict[str, float] = {}
        self._served: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def addresses(self) -> list[str]:
        """Pods that were asked lately."""
        now = time.monotonic()
        return [each for each, at in self._asked.items() if now - at < RECENT_SECONDS]

    def answer(self, address: str) -> tuple[int, str, str]:
        """What the pod at an address tells."""
        with self._lock:
            now = time.monotonic()
            before = self._asked.get(address, now)
            self._asked[address] = now
            share = self.requests_per_second / max(len(self.addresses), 1)
            served = self._served.get(address, 0.0) + share * (now - before)
            self._served[address] = served
        lie = self.lies.get(address) or self.lies.get("*")
        return lie() if lie else (200, "text/plain", self._metrics(int(served), share))

    def _metrics(self, served: int, share: float) -> str:
        running = round(share * (self.ttft_seconds + self.itl_seconds * ANSWER_TOKENS))
        return "\n".join(
            [
                f'vllm:num_requests_running{{engine="0"}} {running}',
                'vllm:num_requests_waiting{engine="0"} 0',
                f'vllm:kv_cache_usage_perc{{engine="0"}} {min(running / 64, 1.0)}',
                f'vllm:request_success_total{{finished_reason="stop"}} {served}',
                'vllm:num_preemptions_total{engine="0"} 0',
                f'vllm:prompt_tokens_total{{engine="0"}} {served * PROMPT_TOKENS}',
                f'vllm:generation_tokens_total{{engine="0"}} {served * ANSWER_TOKENS}',
                *_histogram("time_to_first_token_seconds", TTFT_BOUNDS, served, self.ttft_seconds),
                *_histogram(
                    "inter_token_latency_seconds",
                    ITL_BOUNDS,
                    served * (ANSWER_TOKENS - 1),
                    self.itl_seconds,
                ),
                *_histogram("request_prompt_tokens", (256, 512, 1024), served, PROMPT_TOKENS),
                *_histogram("request_generation_tokens", (128, 256, 512), served, ANSWER_TOKENS),
                "",
            ]
        )


def _histogram(name: str, bounds: tuple[float, ...], count: int, value: float) -> Iterator[str]:
    """So many observations, all alike."""
    for bound in bounds:
        yield f'vllm:{name}_bucket{{le="{bound}"}} {count if value <= bound else 0}'
    yield f'vllm:{name}_bucket{{le="+Inf"}} {count}'
    yield f"vllm:{name}_count {count}"
    yield f"vllm:{name}_sum {count * value}"


@contextmanager
def engines() -> Iterator[Engines]:
    """They answer while the ``with`` lasts."""
    found = Engines()
    with answering(found.answer) as found.port:
        yield found


@contextmanager
def answering(answer: Callable[[str], tuple[int, str, str]]) -> Iterator[int]:
    """One server at all addresses of this machine: ``answer`` is told which one is asked, and gives
    status, content type and body. Its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the library asks for
            status, content_type, body = answer(self.connection.getsockname()[0])
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nobody reads it."""

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
