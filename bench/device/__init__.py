"""Measures training and kernels on the accelerator at hand, as tables for ``bench.model``."""
