"""dCoT: Z. Xu, M. Chen, K. Weinberger and F. Sha, "From sBoW to dCoT", CIKM 2012."""
