"""Keys that are kept and read, and the bytes of their cache."""

from __future__ import annotations

import pytest

from poolwise.model import kv_cache
from poolwise.model.shapes import Transformer
from tests.model.shapes import preset


@pytest.mark.parametrize(
    ("name", "cache_bytes"),
    [
        ("llama-2-7b", 524288),
        ("llama-3.1-70b", 327680),
        ("deepseek-v3", 70272),
        ("falcon-7b", 8192),
        ("qwen3.5-397b-a17b", 30720),
        ("nemotron-3-nano", 6144),
    ],
)
def test_cache_of_one_token(name: str, cache_bytes: float) -> None:
    shape = preset(name).shape
    assert isinstance(shape, Transformer)
    assert kv_cache.cache_bytes(shape, 1) == cache_bytes


def test_a_window_caps_the_cache_of_its_layers() -> None:
    shape = preset("gemma-3-27b").shape
    assert isinstance(shape, Transformer)
    per_key = kv_cache.bytes_per_key(shape)
    assert kv_cache.cache_bytes(shape, 8192) == per_key * (10 * 8192 + 52 * 1024)


def test_a_compressed_cache_is_replicated() -> None:
    latent, grouped = preset("deepseek-v3").shape, preset("llama-3.1-70b").shape
    assert isinstance(latent, Transformer)
    assert isinstance(grouped, Transformer)
    assert kv_cache.shards(latent, 8) == 1
    assert [kv_cache.shards(grouped, tensor) for tensor in (1, 4, 16)] == [1, 4, 8]


def test_an_index_picks_some_of_the_cached_keys() -> None:
    shape = preset("GLM-5").shape
    assert isinstance(shape, Transformer)
    assert kv_cache.read_keys(shape, 1000) == kv_cache.cached_keys(shape, 1000)
    assert kv_cache.read_keys(shape, 9000) == kv_cache.cached_keys(shape, 2048)


def test_a_window_caps_what_an_index_picks_and_not_what_is_cached() -> None:
    reads = kv_cache.Reads(
        whole_layers=0, windowed_layers=1, window_tokens=4096, indexed_tokens=2048
    )
    assert [reads.keys(tokens) for tokens in (1000, 3000, 9000)] == [1000, 2048, 2048]
