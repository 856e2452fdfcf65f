"""Solvers of the linear probes."""
