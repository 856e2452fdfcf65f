"""What a method has learned: its terms, queries by it, and models as files."""
