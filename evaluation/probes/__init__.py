"""Probes: the classifiers by which every representation is judged, and their tuning."""
