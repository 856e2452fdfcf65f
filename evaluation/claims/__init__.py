"""Published figures and the rules by which they are judged."""
