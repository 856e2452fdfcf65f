"""What was computed: rows of results, their summaries and comparisons."""
