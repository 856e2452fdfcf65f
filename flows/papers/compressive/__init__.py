"""H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013."""
