"""The documentation as a program: what its pages tell a reader to run is run.

Belongs here: reading the fenced blocks of a page, running them top to bottom, and comparing what
they print. ``tests/docs`` plays the pages that need no cluster, ``python -m e2e.docs`` those
that need kind.
"""
