"""Discrete-event serving: engines that batch continuously, a router before them, and their lives.

Pure: requests, costs, limits and seeds are arguments; time is simulated. An engine takes prompts in
chunks beside the sequences that decode (vLLM V1), and the simulation skips from one change of a
batch to the next, since all steps between are alike but for the context that grows.
"""
