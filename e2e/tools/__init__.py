"""The Go programs that tests and targets use: pinned in ``*/go.mod``, built once, cached."""
