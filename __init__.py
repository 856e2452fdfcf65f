"""textbench: a benchmark platform for text representations."""
