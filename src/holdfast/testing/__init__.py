"""Public helpers for tests: a clock, an embedder, language models, and the contracts of stores."""
