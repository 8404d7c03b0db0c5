"""The performance model: what a workload needs, what a machine gives, and the time in between.

Belongs here: formulas, and the values they take and return. Every quantity carries its unit in
its name; every formula stands in one place with its source in the docstring; every sum is a
ledger of named terms. Pure: no input or output, no clock, no randomness, no Kubernetes.
"""
