"""Topic models with word vectors: their kernels."""
