"""Where documents come from: archives, downloads, and the user's files."""
