"""What replicas tell of themselves, in one vocabulary whatever engine they run."""
