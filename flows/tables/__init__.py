"""One description of a table, and its writers: for a terminal, as CSV, Markdown and LaTeX."""
