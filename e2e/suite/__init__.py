"""What Poolwise has to do on a real cluster, one file for each capability.

``python -m e2e.kind`` makes the cluster and runs this; ``--core`` takes the tests marked ``core``.
A new capability adds a file. Tests that take nodes or the release itself apart say so with
``stage``, and run after the others.
"""
