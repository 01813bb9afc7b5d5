"""Text primitives: validation, tokens, words, sentences, dates, safe rendering.  All pure."""
