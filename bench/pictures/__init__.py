"""The pictures of docs/concepts.md, drawn from the model: ``python -m bench.pictures``.

Every number comes from the shipped tables, the formulas of :mod:`poolwise.model`, or the decision
on ``examples/`` and the demo's nodes. Nothing is drawn by hand, so a picture that no longer agrees
with the code is found by ``--check``.
"""
