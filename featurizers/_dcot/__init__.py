"""Parts of dCoT."""
