"""One training run on one pool: over how many accelerators it is laid, and how."""
