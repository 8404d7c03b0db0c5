"""Requests and answers of the OpenAI interface, as far as clients of the tests use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

DEFAULT_COMPLETION_TOKENS = 16
"""What the interface says for /v1/completions."""
DEFAULT_CHAT_TOKENS = 128
"""A chat's answer ends where a model ends it; the double ends here, if it was given no limit."""


class Refused(Exception):
    """A request that cannot be served: its HTTP status and the sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    @property
    def body(self) -> dict[str, Any]:
        """As vLLM words errors."""
        kind = "NotFoundError" if self.status == 404 else "BadRequestError"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.status}}


class StreamOptions(BaseModel):
    """What a stream has beside the tokens."""

    include_usage: bool = False


class Request(BaseModel):
    """What both kinds of requests have; what else a client sends is accepted."""

    model: str = ""
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    n: Literal[1] = 1

    @property
    def limit(self) -> int | None:
        """Tokens that the client asks for."""
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(Request):
    """POST /v1/completions."""

    prompt: str | list[int]

    @property
    def prompt_tokens(self) -> int:
        """Token numbers are counted; of a text each word is one token."""
        return max(1, len(self.prompt.split() if isinstance(self.prompt, str) else self.prompt))


class Turn(BaseModel):
    """One message of a chat."""

    role: str
    content: str = ""


class ChatRequest(Request):
    """POST /v1/chat/completions."""

    messages: list[Turn] = Field(min_length=1)

    @property
    def prompt_tokens(self) -> int:
        """The words of all messages."""
        return max(1, sum(len(turn.content.split()) for turn in self.messages))


def answer_tokens(request: Request, prompt_tokens: int, max_model_len: int) -> tuple[int, str]:
    """How long the answer gets, and why it ends there; raises :class:`Refused`."""
    room = max_model_len - prompt_tokens
    wanted = request.limit
    if wanted is None and isinstance(request, CompletionRequest):
        wanted = DEFAULT_COMPLETION_TOKENS
    if room < (wanted or 1):
        raise Refused(
            400,
            f"This model's maximum context length is {max_model_len} tokens. However, you "
            f"requested {prompt_tokens + (wanted or 1)} tokens ({prompt_tokens} in the messages, "
            f"{wanted or 1} in the completion). Please reduce the length of either one.",
        )
    if wanted is not None:
        return wanted, "length"
    return min(DEFAULT_CHAT_TOKENS, room), "stop"


def word(number: int) -> str:
    """The text of the answer's token of that number."""
    return f" w{number}"


def usage(prompt_tokens: int, answer_tokens: int) -> dict[str, int]:
    """Tokens of a request."""
    total = prompt_tokens + answer_tokens
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": answer_tokens,
        "total_tokens": total,
    }


def choice(request: Request, numbers: Sequence[int], reason: str | None) -> dict[str, Any]:
    """One choice of an answer: all of its tokens, or those of one chunk of a stream."""
    text = "".join(map(word, numbers))
    about: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": None}
    if isinstance(request, ChatRequest):
        turn = {"role": "assistant", "content": text}
        return {**about, "delta" if request.stream else "message": turn}
    return {**about, "text": text}


def kind(request: Request) -> str:
    """The ``object`` of an answer."""
    if not isinstance(request, ChatRequest):
        return "text_completion"
    return "chat.completion.chunk" if request.stream else "chat.completion"
