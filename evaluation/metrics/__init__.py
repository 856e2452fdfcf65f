"""Metrics, and what bounds them."""
