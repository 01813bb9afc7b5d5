"""The end of known facts by a user's words, without a model."""
