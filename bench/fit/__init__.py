"""Fits of the shipped constants, one module per part of the model; each writes its own tables."""
