"""Parts of compressive features."""
