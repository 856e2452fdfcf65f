"""What a representation is worth: metrics, fixed classifiers, retrieval by example, ceilings, intervals."""
