"""The documentation as a program: what its pages tell a reader to run is run.

Belongs here: reading the fenced blocks of a page, running them top to bottom, and comparing what
they print. ``tests/docs`` plays the pages that need no cluster, ``e2e/suite/test_docs.py`` those
that need kind.
"""
