"""What series are called is remembered, in bounded memory."""

import tracemalloc
from collections import Counter

import pytest

from poolwise.plan.signals import exposition
from poolwise.plan.signals.adapters import read
from poolwise.plan.signals.exposition import Nonsense
from poolwise.plan.signals.heads import LONGEST_CHARACTERS, Head, Heads

ROOM_BYTES = 2**20


class Parser:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked = Counter[str]()

    def __call__(self, text: str) -> Head:
        self.asked[text] += 1
        return text.partition("{")[0] + "", (("engine", "0"), ("model_name", text * 2))


def held_bytes(texts, most_bytes: int = ROOM_BYTES) -> int:
    """By what is kept of them."""
    heads = Heads(lambda text: (text[:9] + "", (("a", text[1:]), ("b", text[2:]))), most_bytes)
    tracemalloc.start()
    try:
        for text in texts:
            heads.of(text)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("character", ["x", "\U0001f600"])
@pytest.mark.parametrize("characters", [8, 100, LONGEST_CHARACTERS, 4_000])
def test_what_is_kept_is_bounded_in_bytes(character, characters):
    texts = (f"{number}{character * characters}" for number in range(20_000))
    assert held_bytes(texts) < 1.1 * ROOM_BYTES


def test_a_replica_that_makes_up_series_takes_no_memory():
    """New ones at each look, in characters of four bytes, each answer below a mebibyte."""
    tracemalloc.start()
    try:
        for look in range(6):
            lines = (
                f'vllm:num_requests_running{{a="\U0001f600{look}_{n}_{"x" * 900}"}} 0\n'
                for n in range(400)
            )
            read("".join(lines), "vllm", "pod-a", 0.0)
        assert tracemalloc.get_traced_memory()[0] < 17 * 2**20
    finally:
        tracemalloc.stop()


def test_what_is_asked_for_at_each_look_stays():
    parser = Parser()
    heads = Heads(parser, ROOM_BYTES)
    usual = [f'vllm:x_bucket{{le="{number}"}}' for number in range(200)]
    for look in range(50):
        for text in usual:
            assert heads.of(text) == (
                text.partition("{")[0],
                (("engine", "0"), ("model_name", text * 2)),
            )
        for number in range(200):
            heads.of(f"made_up_{look}_{number}")
    assert {parser.asked[text] for text in usual} == {1}
    assert len(parser.asked) == 200 + 50 * 200


def test_series_share_what_they_have_in_common():
    heads = Heads(lambda text: ("vllm:" + "x" * 3, (("engine", "0" * 3),)))
    one, other = heads.of("a"), heads.of("b")
    assert one[0] is other[0]
    assert one[1][0] is other[1][0]


def test_what_cannot_be_read_is_not_remembered():
    for _ in range(2):
        with pytest.raises(Nonsense, match="cannot be read"):
            exposition._HEADS.of('a{b="c}')
