"""The referee: published figures beside measured ones, and the verdicts."""
