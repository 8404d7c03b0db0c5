"""``vllm serve``, played: an engine without a model, whose latency follows its load.

What is real: the HTTP interface, the names, labels and buckets of vLLM 0.29's metrics, and the
scheduling of its V1 engine (continuous batching, chunked prefill within a token budget, KV blocks,
preemption of the youngest, a FIFO queue). What is played: the time of one iteration, which is a
formula (:mod:`costs`), and the text.

Given ``DOUBLE_MODEL_COSTS``, the engine is the simulator's own, and its iterations take what
the serving model says (:mod:`modelled`): for tests that hold a cluster against the simulator.

The parts: :mod:`arguments`, :mod:`costs`, :mod:`sequence` and :mod:`batch` (pure: no clock, no
loop), :mod:`engine` (runs the batch in real time), :mod:`metrics`, :mod:`protocol` (requests and
answers), :mod:`server`.
"""
