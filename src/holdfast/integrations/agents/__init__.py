"""Memory in programs that run agents: hooks of coding agents, the Claude Agent SDK, and the memory tool of Claude's models."""
