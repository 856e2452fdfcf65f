"""Pretrained encoders: where a model is found, what its folder says, and texts turned into vectors by it."""
