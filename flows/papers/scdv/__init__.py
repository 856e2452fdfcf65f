"""SCDV: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "Sparse composite document vectors", EMNLP 2017."""
