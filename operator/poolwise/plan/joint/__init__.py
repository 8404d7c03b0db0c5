"""Placement of many workloads at once, on pools that all of them want.

Pure, and about plain values: :mod:`.problem` goes in, :mod:`.outcome` comes out. See
docs/placement.md for the reasoning.
"""
