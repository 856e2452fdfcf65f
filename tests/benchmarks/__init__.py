"""Benchmarks: each module measures one thing and prints both sides of each ratio in one run."""
