"""Artifacts that papers show and that are no result of a cell."""
