"""Tests of the tools that tests and targets stand on."""
