"""The store: artifacts under keys that say how they were made."""
