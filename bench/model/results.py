"""Kept until bench/fit/serving.py reads it from bench.tables."""

from bench.tables import split_of

__all__ = ["split_of"]
