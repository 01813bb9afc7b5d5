"""Adapters that give a memory to other frameworks, one file a framework."""
