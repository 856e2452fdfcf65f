"""Experiments on what explains the gap between a published figure and a measured one.

`python -m tests.benchmarks.gaps NAME...` runs them; the ledger's notes (`textbench claims ID
--explain`) have what they print.
"""
