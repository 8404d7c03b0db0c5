"""``load``: asks an engine as independent users do, and prints what they felt, as JSON.

Requests start at the times of a Poisson process whether or not earlier ones were answered: an
engine that is too slow gets a queue, as in reality. Same seed, same requests at the same times.
"""
