"""
Patterns of statements of fact, as data: one TOML file a language, named by its ISO 639-1 code.

``patterns/README.md`` explains the format; `holdfast.digest.grammar` compiles it; every example in a
file is run as a test.
"""
