"""What a user starts: the flows, their suites, and the command line."""
