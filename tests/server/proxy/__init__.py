"""The proxy, between unmodified clients and a model on this machine."""
