"""Planning: what will run, with every key, before anything runs."""
