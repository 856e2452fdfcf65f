"""Every drawing, in one style."""
