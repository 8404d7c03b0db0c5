"""One service on one pool: over how many accelerators a replica is laid, and how many it takes."""
